//! The tool of `data/greeting.yaml`, as an MCP server.

use rmcp::{
    Json,
    handler::server::wrapper::Parameters,
    schemars::{self, JsonSchema},
    tool, tool_router,
};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct Person {
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct Greeting {
    greeting: String,
}

pub struct Tools;

#[tool_router(server_handler)]
impl Tools {
    #[tool(description = "Greets someone.")]
    fn greet(&self, Parameters(Person { name }): Parameters<Person>) -> Json<Greeting> {
        let greeting = format!("Hello, {name}!");
        Json(Greeting { greeting })
    }
}
