//! `http_tool` with reqwest and backon.

use std::{error::Error, time::Duration};

use backon::{ExponentialBuilder, Retryable};
use reqwest::{Client, StatusCode, Url};
use serde_json::Value;
use serde_json_path::JsonPath;
use toolplane_peers::weather;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut url: Url = format!("http://{}/v1/weather", weather::serve()?).parse()?;
    url.path_segments_mut()
        .expect("an HTTP URL")
        .push("Bad Homburg/v. d. Höhe");
    let client = Client::new();
    let fetch = async || {
        let request = client.get(url.clone()).query(&[("days", 2)]);
        let response = request.bearer_auth("a-key").send().await?;
        response.error_for_status()?.json::<Value>().await
    };
    let answer = fetch
        .retry(ExponentialBuilder::default().with_min_delay(Duration::from_millis(5)))
        .when(|error| error.status() == Some(StatusCode::SERVICE_UNAVAILABLE))
        .await?;
    let path = JsonPath::parse("$.forecast[*].temperature")?;
    println!("{}", serde_json::to_string(&path.query(&answer).all())?);
    Ok(())
}
