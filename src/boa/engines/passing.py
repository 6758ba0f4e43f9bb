"""The part of an environment that passes to jobs: a list, so that what nobody thought of stays out.

A service's environment is full of what its jobs have no business with: its token, the cloud's
credentials, the database's password. A job that needs more gets it by its own `env`, by a secret,
or from who runs the service by `pass_env`.
"""

import re
from collections.abc import Iterable, Mapping

NEVER = "BOA_"
"""Beginning of variables of the service's own: no list lets them through."""
OF_TORCHRUN = (
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
)
"""Another job's, where the service runs inside of one."""
PASSED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "HOSTNAME", "TERM"),
    *("LANG", "LANGUAGE", "LC_*", "TZ", "TZDIR", "TMPDIR", "TMP", "TEMP", "XDG_CACHE_HOME"),
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "LIBRARY_PATH", "CPATH"),
    *("PYTHON*", "VIRTUAL_ENV", "CONDA_*", "MAMBA_*"),
    *("CUDA*", "CUDNN_*", "CUBLAS_*", "NVIDIA_*", "NCCL_*", "NVTE_*", "HIP_*", "HSA_*"),
    *("ROCM_*", "ROCR_*", "GLOO_*", "UCX_*", "FI_*", "MPI_*", "OMPI_*"),
    *("OMP_*", "GOMP_*", "KMP_*", "MKL_*", "OPENBLAS_*", "BLIS_*", "VECLIB_*", "NUMEXPR_*"),
    *("TORCH*", "PYTORCH_*", "TRITON_*", "XLA_*", "JAX_*", "TF_*", "TPU_*"),
    *("HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_DATASETS_CACHE", "HF_DATASETS_OFFLINE"),
    *("TRANSFORMERS_CACHE", "TRANSFORMERS_OFFLINE", "TOKENIZERS_PARALLELISM"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ftp_proxy"),
)
"""Names; those that end in * are the beginnings of names."""
_SECRET = re.compile(
    r"TOKEN$|TOKENS$|SECRET|PASSW|PASSPHRASE|CREDENTIAL|(^|_)(KEY|KEYS|AUTH|PWD|PAT)$", re.I
)
"""Names that say of themselves what they hold: not let through by the beginning of a name."""
_WITH_PASSWORD = re.compile(r"[^/]*(//)?[^/]*@")
"""A proxy's address with a user and a password in it."""


def passed(environment: Mapping[str, str], more: Iterable[str] = ()) -> dict[str, str]:
    """All of it that jobs see. `more`: names and beginnings of names, as in `PASSED`."""
    exact, beginnings = _parts(PASSED)
    named, wider = _parts(more)
    found = {}
    for name, value in environment.items():
        if name.startswith(NEVER) or name in OF_TORCHRUN:
            continue
        listed = name in exact or (name.startswith(beginnings) and not _SECRET.search(name))
        if listed and name.lower().endswith("_proxy") and _WITH_PASSWORD.match(value):
            listed = False
        if listed or name in named or name.startswith(wider):
            found[name] = value
    return found


def _parts(patterns: Iterable[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Names as they are, and beginnings of names."""
    patterns = tuple(patterns)
    exact = frozenset(name for name in patterns if not name.endswith("*"))
    return exact, tuple(name[:-1] for name in patterns if name.endswith("*"))
