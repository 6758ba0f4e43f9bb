"""Boot script of a node: join the Ray cluster, or end, so that nobody pays for nothing.

The script is the same on every node of a type; under which token a node was rented it reads from
its own tags. BOA_METADATA, BOA_STATE and BOA_PROC are for tests.
"""

import json
import shlex

from boa.errors import InputError
from boa.model.provider_settings import AwsSettings
from boa.model.workload import GpuType
from boa.units import Seconds

JOIN_S: Seconds = 900.0
"""Seconds from the start of the script until the node must have joined."""
MAX_BYTES = 16_384
"""Bytes of user data that AWS takes."""

_SCRIPT = """\
#!/bin/bash
export HOME="${HOME:-/root}"
metadata="${BOA_METADATA:-http://169.254.169.254}/latest"
state="${BOA_STATE:-/run/boa}"
mkdir -p "$state"

end() {
  echo "boa: $1: this node ends"
  shutdown -h now
}

# Whatever hangs: a node that has not joined by then ends.
watch() {
  sleep @JOIN_S@
  [ -e "$state/joined" ] || end "not joined after @JOIN_S@ s"
}

ask() {
  curl -sf --retry 5 --retry-connrefused --max-time 20 "$@"
}

token_of_node() {
  local session try
  for try in $(seq 30); do
    session=$(ask -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 300' \\
      "$metadata/api/token") &&
      ask -H "X-aws-ec2-metadata-token: $session" "$metadata/meta-data/tags/instance/boa:token" &&
      return
    sleep 2
  done
  return 1
}

join() {
  set -eo pipefail
  why="the setup failed"
  trap 'end "$why"' EXIT
  eval "$setup"
  why="its GPUs are not all there"
  [ "$(nvidia-smi -L | grep -c '^GPU ')" -ge @GPUS@ ]
  why="its token cannot be read"
  token=$(token_of_node)
  why="ray start failed"
  ray start --address=@HEAD@ --resources=@RESOURCES@ --labels="boa-token=$token"
  touch "$state/joined"
  why="Ray has ended"
  while grep -qsx raylet "${BOA_PROC:-/proc}"/[0-9]*/comm; do sleep 15; done
}

setup=@SETUP@
(watch) </dev/null >>"$state/log" 2>&1 &
(join) </dev/null >>"$state/log" 2>&1 &
"""


def script(settings: AwsSettings, gpu: GpuType) -> str:
    """User data of all nodes of this type."""
    words = {
        "@JOIN_S@": f"{JOIN_S:.0f}",
        "@GPUS@": str(gpu.gpus_per_node),
        "@HEAD@": shlex.quote(settings.head),
        "@RESOURCES@": shlex.quote(json.dumps({gpu.name: gpu.gpus_per_node})),
    }
    text = _SCRIPT
    for word, meaning in words.items():
        text = text.replace(word, meaning)
    text = text.replace("@SETUP@", shlex.quote(settings.setup))  # last: it may hold any word
    size = len(text.encode())
    if size > MAX_BYTES:
        problem = f"the script that a node boots with has {size} bytes"
        raise InputError("aws.setup", settings.setup, f"{MAX_BYTES} at most", problem)
    return text
