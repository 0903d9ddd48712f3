"""`python -m rehearsal.local_aws.server ...`: run the local AWS.

rehearsal.local_aws.process starts it and waits until it is ready. The emulators read their
settings from the environment when they are imported, so this module sets it first.
"""

import argparse
import asyncio
import os
import signal
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rehearsal.local_aws.address import ACCOUNT, REGION, LocalAwsAddress
from rehearsal.local_aws.certificate import make_certificate
from rehearsal.local_aws.process import READY
from rehearsal.local_aws.publications import publish_layer, write_official_images
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.paths import ROOT

if TYPE_CHECKING:
    from rehearsal.local_aws.gateway import Application

# CDK's Provider framework polls every 10 s on AWS; nothing here takes that long.
_WAIT_SCALE = "0.05"
_MAX_HEADER_BYTES = 1 << 20


def configure(address: LocalAwsAddress) -> None:
    """Write the address's files, and set the environment that the emulators read when they are imported."""
    for folder in (address.tmp, address.folder / "tls", address.folder / "s3"):
        folder.mkdir(parents=True, exist_ok=True)
    key = address.folder / "tls" / "key.pem"
    make_certificate(certificate=address.certificate, key=key, trust_bundle=address.trust_bundle)
    images = address.folder / "official-images.json"
    write_official_images(images, PCLUSTER_VERSION)
    os.environ |= address.client_variables() | {
        "GATEWAY_PORT": str(address.port),
        "MINISTACK_HOST": "localhost",
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "MINISTACK_REGION": REGION,
        "USE_SSL": "1",
        "MINISTACK_SSL_CERT": str(address.certificate),
        "MINISTACK_SSL_KEY": str(key),
        "STATE_DIR": str(address.folder / "state"),
        "S3_DATA_DIR": str(address.folder / "s3"),
        "SFN_WAIT_SCALE": _WAIT_SCALE,
        "LAMBDA_EXECUTOR": "local",
        "NODE_PATH": str(ROOT / "node_modules"),  # SDK of the functions in JavaScript
        # No listeners of services that nothing here uses.
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "LOG_LEVEL": "WARNING",
        "MOTO_ACCOUNT_ID": ACCOUNT,
        "MOTO_AMIS_PATH": str(images),
        "MOTO_EC2_LOAD_DEFAULT_AMIS": "true",
    }


def make_gateway(address: LocalAwsAddress) -> "Application":
    """Import the emulators, install the corrections, once in a process, and return what answers requests."""
    from ministack.app import app  # noqa: PLC0415

    from rehearsal.local_aws import functions, services  # noqa: PLC0415
    from rehearsal.local_aws.cloudformation import engine as cloudformation  # noqa: PLC0415
    from rehearsal.local_aws.cloudformation import handlers  # noqa: PLC0415
    from rehearsal.local_aws.emulators import moto_services  # noqa: PLC0415
    from rehearsal.local_aws.gateway import Gateway  # noqa: PLC0415
    from rehearsal.local_aws.head_node import head_node, run_commands  # noqa: PLC0415
    from rehearsal.local_aws.rights import gate  # noqa: PLC0415

    cloudformation.refuse_users_while(address.head_node_program)
    functions.install()
    services.install()
    head_node.install(address)
    run_commands.install(address)
    for type_ in ("AWS::FSx::FileSystem", "AWS::RDS::DBInstance"):
        handlers.refuse_while(address.quota_used_up(type_), type_)
    rights = gate.Gate(address)
    rights.install()
    return Gateway(
        ministack=app,
        moto=moto_services.MotoServices(address.port),
        gate=rights,
        log=address.folder / "requests.log",
    )


async def _serve(address: LocalAwsAddress, *, listener: int) -> None:
    from hypercorn.asyncio import serve  # noqa: PLC0415
    from hypercorn.config import Config  # noqa: PLC0415

    gateway = make_gateway(address)
    config = Config()
    config.bind = [f"fd://{listener}"]
    config.accesslog = config.errorlog = None
    config.certfile, config.keyfile = os.environ["MINISTACK_SSL_CERT"], os.environ["MINISTACK_SSL_KEY"]
    config.alpn_protocols = ["http/1.1"]
    config.h11_max_incomplete_size = _MAX_HEADER_BYTES
    stop = asyncio.Event()
    asyncio.get_running_loop().set_exception_handler(_note)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server = asyncio.create_task(serve(gateway, config, shutdown_trigger=stop.wait))  # type: ignore[arg-type]
    await _publish_when_up(address)
    await server


def _note(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Note what a task raised, but for clients that left their connection open, as killed ones do."""
    if str(context.get("exception")) != "SSL shutdown timed out":
        loop.default_exception_handler(context)


async def _publish_when_up(address: LocalAwsAddress) -> None:
    for _ in range(100):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", address.port)
        except OSError:
            await asyncio.sleep(0.1)
            continue
        writer.close()
        break
    await asyncio.to_thread(publish_layer, address, PCLUSTER_VERSION)
    print(READY, flush=True)


def main() -> None:
    """Parse the command line and serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument(
        "--listener", type=int, required=True, help="file descriptor of a socket that listens on the port"
    )
    parser.add_argument("--folder", type=Path, required=True)
    arguments = parser.parse_args()
    address = LocalAwsAddress(
        port=arguments.port,
        folder=arguments.folder.absolute(),
        # Not an option, since every user of the machine can read command lines.
        access_key=os.environ["AWS_ACCESS_KEY_ID"],
    )
    warnings.simplefilter("ignore")
    configure(address)
    asyncio.run(_serve(address, listener=arguments.listener))


if __name__ == "__main__":
    main()
