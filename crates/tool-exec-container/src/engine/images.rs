use bollard::{errors::Error, query_parameters::CreateImageOptionsBuilder};
use futures_util::StreamExt;

use super::{Engine, EngineError};
use crate::image::ImageReference;

/// Image that the engine has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundImage {
    /// Id of its content.
    pub(crate) id: String,
    /// Paths at which it expects volumes.
    pub(crate) volumes: Vec<String>,
}

/// Finds an image. One that is missing is pulled if that is allowed; `report` is called before.
pub(crate) async fn find_image(
    engine: &Engine,
    image: &ImageReference,
    may_pull: bool,
    report: impl FnOnce(),
) -> Result<FoundImage, EngineError> {
    if let Some(found) = inspect(engine, image).await? {
        return Ok(found);
    }
    if may_pull && matches!(image, ImageReference::Manifest { .. }) {
        report();
        pull(engine, image).await?;
        if let Some(found) = inspect(engine, image).await? {
            return Ok(found);
        }
    }
    Err(EngineError::NoImage {
        engine: engine.about.name.to_owned(),
        image: image.to_string(),
        hint: image.how_to_get(engine.about.program()),
    })
}

async fn inspect(engine: &Engine, image: &ImageReference) -> Result<Option<FoundImage>, EngineError> {
    const ACTION: &str = "show the image";
    let found = match engine.docker.inspect_image(&image.to_string()).await {
        Ok(found) => found,
        Err(Error::DockerResponseServerError { status_code: 404, .. }) => return Ok(None),
        Err(error) => return Err(EngineError::of(ACTION, error)),
    };
    let id = found.id.unwrap_or_default();
    let digest = image.digest();
    let mut digests = found.repo_digests.iter().flatten();
    let has_digest = id == digest
        || digests.any(|known| known.ends_with(digest))
        || found
            .descriptor
            .and_then(|descriptor| descriptor.digest)
            .as_deref()
            == Some(digest);
    if !has_digest {
        let message = format!("it showed another one than `{image}`");
        return Err(EngineError::Refused {
            action: ACTION,
            message,
        });
    }
    let volumes = found.config.and_then(|config| config.volumes).unwrap_or_default();
    Ok(Some(FoundImage { id, volumes }))
}

async fn pull(engine: &Engine, image: &ImageReference) -> Result<(), EngineError> {
    let options = CreateImageOptionsBuilder::new()
        .from_image(&image.to_string())
        .build();
    let mut progress = engine.docker.create_image(Some(options), None, None);
    while let Some(step) = progress.next().await {
        let step = step.map_err(|error| EngineError::of("pull the image", error))?;
        if let Some(message) = step.error_detail.and_then(|detail| detail.message) {
            return Err(EngineError::Refused {
                action: "pull the image",
                message,
            });
        }
    }
    Ok(())
}
