//! Settings of tools that run a program, and what the executors of programs have in common: variables of arguments, limits,
//! forms of output, kinds of exit codes, and errors with the end of standard error.

mod exit_codes;
mod failure;
mod limits;
mod output;
mod variables;

pub use self::{
    exit_codes::ExitCodes,
    failure::{ProgramFailure, last_lines},
    limits::{LimitSettings, MAX_STORED_PROCESSES, ProgramLimits},
    output::OutputFormat,
    variables::{
        VariableError, argument_variables, check_parameters, check_variable, environment, parameter_variable,
        resolve_environment,
    },
};
