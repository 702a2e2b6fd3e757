//! A small HTTP API without any knowledge of toolplane: the backend of the tools `forecast` and `report` of
//! `toolplane.yaml`.
//!
//! Run it with `cargo run -p toolplane-examples --example weather-service [ADDRESS]`; it listens on `127.0.0.1:7081` by
//! default, prints its address, and ends with Ctrl-C.

#![expect(clippy::print_stdout, reason = "it says where it listens")]

use std::error::Error;

use axum::{
    Json, Router,
    extract::{Path, Query},
    http::StatusCode,
    routing::{get, post},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:7081")).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let service = Router::new()
        .route("/cities/{city}/forecast", get(forecast))
        .route("/reports", post(report));
    axum::serve(listener, service).await?;
    Ok(())
}

#[derive(Deserialize)]
struct Span {
    #[serde(default = "Span::one_day")]
    days: u32,
}

impl Span {
    fn one_day() -> u32 {
        1
    }
}

/// Returns a forecast that anyone can check: the sky depends on the day and the length of the city's name.
async fn forecast(Path(city): Path<String>, Query(span): Query<Span>) -> Json<Value> {
    const SKIES: [&str; 3] = ["clear", "cloudy", "rain"];
    let first = city.chars().count();
    let days: Vec<Value> = (0..span.days.min(14))
        .zip(SKIES.iter().cycle().skip(first % SKIES.len()))
        .map(|(day, sky)| json!({"day": day, "sky": sky}))
        .collect();
    Json(json!({"data": {"city": city, "days": days}, "took_ms": 1}))
}

#[derive(Deserialize)]
struct Report {
    city: String,
    sky: String,
}

async fn report(Json(report): Json<Report>) -> (StatusCode, Json<Value>) {
    let answer = json!({"accepted": true, "city": report.city, "sky": report.sky});
    (StatusCode::CREATED, Json(answer))
}
