"""Images that come with a memory: checked, described in words, and not kept."""

import hashlib
import io
import logging
from dataclasses import dataclass

from PIL import Image as Pillow
from PIL import UnidentifiedImageError

from store.engine import Engine
from store.errors import StoreError

log = logging.getLogger(__name__)

MAX_IMAGE_BYTES = 2 * 1024 * 1024
MAX_IMAGE_PIXELS = 40_000_000
MEDIA_TYPES = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP", "image/gif": "GIF"}
NO_MODEL = "The image was not read: this server has no model that sees. Only the content was stored."
MODEL_AWAY = "The image was not read: the model that sees did not answer. Only the content was stored."


@dataclass(frozen=True)
class Read:
    """What became of an image: `text` is what a model saw in it, `note` why there is none."""

    sha256: str
    text: str | None
    note: str | None


def read(engine: Engine, image: bytes, media_type: str, has_content: bool) -> Read:
    """Describes the image, or says why it was not read.

    Raises:
        StoreError: `invalid_argument` or `too_large` for what is no such image, or when there is neither a
            description nor content; `unavailable` when there is no content and the model is away.
    """
    check(image, media_type)
    digest = hashlib.sha256(image).hexdigest()
    if engine.vision_model is None:
        if not has_content:
            raise StoreError(
                "invalid_argument", "this server has no model that sees: describe the image as content"
            )
        return Read(digest, None, NO_MODEL)
    try:
        text = engine.vision_model.describe(image, media_type).strip()
    except StoreError as error:
        if not has_content:
            raise
        log.warning("vision_model.unavailable", extra={"code": error.code})
        return Read(digest, None, MODEL_AWAY)
    if not text and not has_content:
        raise StoreError("invalid_argument", "nothing could be seen in the image: describe it as content")
    return Read(digest, text or None, None)


def check(image: bytes, media_type: str) -> None:
    """Whether the bytes are an image of that type, judged by themselves and without decoding the pixels.

    Raises:
        StoreError: `invalid_argument` or `too_large`.
    """
    if media_type not in MEDIA_TYPES:
        raise StoreError("invalid_argument", f"image_mime_type is one of {', '.join(MEDIA_TYPES)}")
    if len(image) > MAX_IMAGE_BYTES:
        raise StoreError("too_large", f"the image is larger than {MAX_IMAGE_BYTES} bytes")
    try:
        with Pillow.open(io.BytesIO(image), formats=[MEDIA_TYPES[media_type]]) as opened:
            width, height = opened.size
    except Pillow.DecompressionBombError as error:
        raise StoreError("too_large", f"the image has more than {MAX_IMAGE_PIXELS} pixels") from error
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise StoreError("invalid_argument", f"the image is no {MEDIA_TYPES[media_type]} file") from error
    if width * height > MAX_IMAGE_PIXELS:
        raise StoreError("too_large", f"the image has more than {MAX_IMAGE_PIXELS} pixels")
