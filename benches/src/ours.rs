//! The measured client, `mcp-client`.

use std::{env, time::Duration};

use anyhow::{Context as _, Result};
use mcp_client::{Command, Connection, ConnectionOptions, EraChoice, HttpEndpoint, RequestOptions};
use raw_json::RawJson;

use crate::client::{Client, Way, check, params};

pub struct Ours(Connection);

impl Ours {
    pub async fn open(way: Way, server: &str) -> Result<Self> {
        let era = match way {
            Way::HttpJson => EraChoice::Modern,
            _ => EraChoice::Legacy,
        };
        let options = ConnectionOptions::default().era(era);
        Ok(Self(match way {
            Way::Stdio => {
                let program = env::current_exe()?;
                let program = program.to_str().context("the path of this program is text")?;
                Connection::spawn(&Command::new(program).args(["serve-stdio"]), options).await?
            }
            _ => Connection::http(&HttpEndpoint::new(server)?, options).await?,
        }))
    }
}

impl Client for Ours {
    async fn call(&self, payload: String) -> Result<()> {
        let params = RawJson::parse(params(&payload))?;
        let options = RequestOptions::with_timeout(Duration::from_secs(30));
        let result = self.0.request("tools/call", Some(params), options).await?;
        check(result.as_str(), &payload)
    }
}
