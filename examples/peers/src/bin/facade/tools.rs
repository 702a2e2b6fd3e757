//! The tools of `data/facade.yaml`, as an MCP server.

use std::time::Duration;

use rmcp::{
    Json,
    handler::server::wrapper::Parameters,
    schemars::{self, JsonSchema},
    tool, tool_router,
};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
pub struct City {
    city: String,
}

#[derive(Serialize, JsonSchema)]
pub struct Weather {
    city: String,
    sky: String,
}

pub struct Tools;

#[tool_router(server_handler)]
impl Tools {
    #[tool(description = "Says what the weather is like in a city.")]
    fn weather(&self, Parameters(City { city }): Parameters<City>) -> Json<Weather> {
        Json(Weather {
            city,
            sky: "clear".to_owned(),
        })
    }

    #[tool(description = "Takes longer than anyone waits.")]
    async fn survey(&self) -> String {
        tokio::time::sleep(Duration::from_secs(60)).await;
        "done".to_owned()
    }

    #[tool(description = "Turns everything off.")]
    fn shutdown(&self) -> String {
        "done".to_owned()
    }
}
