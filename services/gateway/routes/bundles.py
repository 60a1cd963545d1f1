"""Uploads of bundles: the parts that are missing, then the manifest."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from berth_client import answers
from services.gateway.core.field_errors import FieldError, InvalidBody
from services.gateway.core.strict import parse_body
from services.gateway.requests.authorization import authorize
from services.gateway.requests.body import json_body, raw_body
from services.gateway.requests.commands import json_response
from services.gateway.requests.updates import require_finished
from services.gateway.responses.openapi import read_route, request_body
from services.gateway.routes.submissions import OfTenant, owner_of, sender_for
from services.gateway.wiring import Gateway, gateway_of
from shared.contracts.bundles import MAX_PARTS, PART_BYTES, Manifest

MANIFEST_BYTES = 128 * MAX_PARTS
EARLIER = "jobs start with the files of their `workdir`"

router = APIRouter(prefix="/v1/bundles", tags=["bundles"])

Part = Annotated[str, Path(description="SHA-256 of the body, in hexadecimal")]
BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.put(
    "",
    **read_route(answers.BundleReceipt, 400, 409, 413, 415, 422),
    openapi_extra=request_body(Manifest),
)
async def put_bundle(request: Request, tenant: OfTenant = None) -> Response:
    """Store a bundle: a job whose `bundle` is its name starts with the files.

    The parts that are `missing` are to be sent first, then this request again.
    """
    gateway, owner = await _open(request, tenant)
    manifest = parse_body(Manifest, await json_body(request, MANIFEST_BYTES))
    if fault := manifest.fault():
        field, _, rule = fault.partition(": ")
        raise InvalidBody([FieldError(field=field, rule=rule)])
    missing = await gateway.bundles.put_manifest(owner, manifest)
    return json_response({"bundle": manifest.bundle, "tenant": owner, "missing": missing})


@router.put(
    "/parts/{sha256}",
    **read_route(answers.BundlePartReceipt, 409, 413, 415, 422),
    openapi_extra=BODY,
)
async def put_part(request: Request, sha256: Part, tenant: OfTenant = None) -> Response:
    """Store a part of a bundle, of 1 MiB at most."""
    gateway, owner = await _open(request, tenant)
    body = await raw_body(request, PART_BYTES)
    if (await asyncio.to_thread(hashlib.sha256, body)).hexdigest() != sha256:
        rule = f"is not that of the body, which has {len(body)} bytes"
        raise InvalidBody([FieldError(field="sha256", value=sha256, rule=rule)])
    await gateway.bundles.put_part(owner, sha256, body)
    return json_response({"sha256": sha256, "size_bytes": len(body)})


async def _open(request: Request, named: str | None) -> tuple[Gateway, str]:
    """Return the gateway, and the tenant whose bundle it is."""
    gateway, bearer = gateway_of(request), await authorize(request, "submitter")
    owner = sender_for(gateway.access, bearer, owner_of(bearer, named)).tenant
    require_finished(gateway.access.view, "a bundle", EARLIER)
    return gateway, owner
