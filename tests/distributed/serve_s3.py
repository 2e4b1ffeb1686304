"""A server that speaks S3, on this machine alone, for as long as it is not ended."""

from __future__ import annotations

import json
import os
import sys
import threading

from moto.server import ThreadedMotoServer


def main() -> None:
    """Print the variables that name it, and serve."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    variables = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    os.environ.update(variables)
    import boto3

    boto3.client("s3").create_bucket(Bucket="harbour")
    sys.stdout.write(f"{json.dumps(variables)}\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    main()
