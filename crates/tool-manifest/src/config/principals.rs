//! Roles and principals of the policy.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use tool_core::Caller;
use tool_settings::{Entries, Field, NodeId};

use crate::{
    Diagnostic, PolicySpec, PrincipalSpec,
    diagnostics::report::Report,
    document::{
        lists::items,
        place::{Cx, Place},
        suggest,
    },
    loading::draft::clash,
    tools::metadata::texts,
};

/// A principal: who may call, as tokens or a login in front name it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Principal")]
pub(crate) struct PrincipalBody {
    /// Tenant of the principal, whose data, limits and cached results are apart from those of other tenants. Tokens
    /// that name another tenant are refused. By default the tenant of the token, or else `default`.
    tenant: Field<String>,
    /// Roles of the principal, by their names in `policy.roles`.
    roles: Field<Vec<Field<String>>>,
    /// Permissions of the principal, in addition to those of its roles and those in `policy.permissions`.
    permissions: Field<Vec<Field<String>>>,
}

/// Roles and principals that are being read, with the places that messages need.
#[derive(Debug, Default)]
pub(crate) struct PrincipalsDraft {
    roles: BTreeMap<String, (Place, Vec<String>)>,
    principals: BTreeMap<String, (Place, PrincipalSpec)>,
    /// Names of roles that principals have.
    named_roles: Vec<(Place, String)>,
}

impl PrincipalsDraft {
    /// Adds the roles and principals of a file.
    pub(crate) fn read(
        &mut self,
        cx: Cx<'_>,
        roles: Field<Entries<Vec<Field<String>>>>,
        principals: Field<Entries<PrincipalBody>>,
    ) {
        for (name, permissions) in roles.get().unwrap_or_default() {
            let Some(at) = permissions.place() else { continue };
            check_name(cx, at, "role", &name);
            self.put_role(cx.report, name, (cx.place(at), texts(permissions)));
        }
        for (name, principal) in principals.get().unwrap_or_default() {
            let Some(at) = principal.place() else { continue };
            check_name(cx, at, "principal", &name);
            let spec = self.principal(cx, &name, principal.get().unwrap_or_default());
            self.put_principal(cx.report, name, (cx.place(at), spec));
        }
    }

    fn principal(&mut self, cx: Cx<'_>, name: &str, body: PrincipalBody) -> PrincipalSpec {
        let tenant = body.tenant.located().map(|(at, tenant)| {
            if let Err(broken) = Caller::check_name(&tenant) {
                cx.error(
                    at,
                    format!("the tenant of `{}` {broken}", suggest::shown(name)),
                    "",
                );
            }
            tenant
        });
        let roles = items(body.roles).filter_map(Field::located);
        let roles: Vec<_> = roles.map(|(at, role)| (cx.place(at), role)).collect();
        let names = roles.iter().map(|(_, role)| role.clone()).collect();
        self.named_roles.extend(roles);
        PrincipalSpec {
            tenant,
            roles: names,
            permissions: texts(body.permissions),
        }
    }

    fn put_role(&mut self, report: &Report, name: String, role: (Place, Vec<String>)) {
        // Lists of two files are not merged: a role would silently get more permissions.
        match self.roles.get(&name) {
            Some((first, _)) => {
                let message = format!("the role `{}` is defined twice", suggest::shown(&name));
                report.push(clash(&message, &role.0, first));
            }
            None => {
                self.roles.insert(name, role);
            }
        }
    }

    fn put_principal(&mut self, report: &Report, name: String, principal: (Place, PrincipalSpec)) {
        match self.principals.get(&name) {
            Some((first, _)) => {
                let message = format!("the principal `{}` is defined twice", suggest::shown(&name));
                report.push(clash(&message, &principal.0, first));
            }
            None => {
                self.principals.insert(name, principal);
            }
        }
    }

    /// Merges the roles and principals of another file into these.
    pub(crate) fn merge(&mut self, report: &Report, other: Self) {
        for (name, role) in other.roles {
            self.put_role(report, name, role);
        }
        for (name, principal) in other.principals {
            self.put_principal(report, name, principal);
        }
        self.named_roles.extend(other.named_roles);
    }

    /// Reports roles that principals have and that no file defines.
    pub(crate) fn check(&self, report: &Report) {
        let known: Vec<&str> = self.roles.keys().map(String::as_str).collect();
        for (place, role) in &self.named_roles {
            if !self.roles.contains_key(role) {
                let message = format!("the role `{}` is not defined", suggest::shown(role));
                let hint = match suggest::nearest(role, &known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "define it under `policy.roles`, with its permissions".to_owned(),
                };
                let at = place.document.location(place.at);
                report.push(Diagnostic::error(message).with_location(Some(at)).with_hint(hint));
            }
        }
    }

    /// Returns the permissions of all roles and principals.
    pub(crate) fn permissions(&self) -> impl Iterator<Item = &String> {
        let of_roles = self.roles.values().flat_map(|(_, permissions)| permissions);
        let of_principals = self.principals.values().flat_map(|(_, spec)| &spec.permissions);
        of_roles.chain(of_principals)
    }

    /// Returns the places of the principals.
    pub(crate) fn places(&self) -> impl Iterator<Item = (&str, &Place)> {
        self.principals
            .iter()
            .map(|(name, (place, _))| (name.as_str(), place))
    }

    pub(crate) fn finish(self, policy: &mut PolicySpec) {
        let roles = self.roles.into_iter();
        policy.roles = roles
            .map(|(name, (_, permissions))| (name, permissions))
            .collect();
        let principals = self.principals.into_iter();
        policy.principals = principals.map(|(name, (_, spec))| (name, spec)).collect();
    }
}

fn check_name(cx: Cx<'_>, at: NodeId, kind: &str, name: &str) {
    if let Err(broken) = Caller::check_name(name) {
        let message = format!("the name of the {kind} `{}` {broken}", suggest::shown(name));
        cx.key_error(at, message, "write 1 to 128 characters without white space");
    }
}
