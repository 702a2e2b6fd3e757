//! The loop of an agent: a model and tools take turns until the model is done.

mod agent;
mod body;
mod limits;
mod model;
mod scripted;
mod state;

pub use self::{
    agent::{Agent, AgentEnd, AgentError, AgentTools, AgentWatch, WaitingCall},
    limits::AgentLimits,
    model::{Model, ModelError, ModelRequest},
    scripted::ScriptedModel,
    state::{Conversation, StateError},
};
