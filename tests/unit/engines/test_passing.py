"""What of an environment passes to jobs."""

import pytest

from boa.engines.passing import passed


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER", "SHELL", "TMPDIR", "LD_LIBRARY_PATH"),
        *("CUDA_HOME", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "NCCL_DEBUG"),
        *("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "OMP_NUM_THREADS", "SSL_CERT_FILE"),
    ],
)
def test_what_programs_cannot_do_without_passes(name: str) -> None:
    assert passed({name: "x"}) == {name: "x"}


@pytest.mark.parametrize(
    "name",
    [
        *("BOA_TOKEN", "BOA_SECRET_KEY_FILE", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
        *("AWS_PROFILE", "DATABASE_URL", "PGPASSWORD", "RAY_AUTH_TOKEN", "HF_TOKEN"),
        *("WANDB_API_KEY", "SSH_AUTH_SOCK", "GITHUB_TOKEN", "KUBECONFIG", "WHATEVER", "RANK"),
        *("CONDA_TOKEN", "NCCL_SECRET", "TORCH_API_KEY", "PYTHON_KEYRING_PASSWORD"),
    ],
)
def test_what_nobody_named_does_not(name: str) -> None:
    assert passed({name: "x"}) == {}


def test_who_runs_the_service_lets_more_through_by_name_or_by_its_beginning() -> None:
    found = {"WANDB_MODE": "offline", "S3_A": "1", "S3_SECRET": "2", "OTHER": "3"}
    assert passed(found, ["WANDB_MODE", "S3_*"]) == {
        "WANDB_MODE": "offline",
        "S3_A": "1",
        "S3_SECRET": "2",
    }


def test_no_list_lets_the_services_own_variables_through() -> None:
    assert passed({"BOA_TOKEN": "x", "BOX": "y"}, ["BOA_TOKEN", "BO*"]) == {"BOX": "y"}


@pytest.mark.parametrize("address", ["http://me:pw@proxy:3128", "me:pw@proxy", "http://me@proxy"])
def test_a_proxy_passes_without_the_password_that_it_is_asked_with(address: str) -> None:
    plain = {"https_proxy": "http://proxy:3128/a@b", "NO_PROXY": "localhost"}
    assert passed({"HTTP_PROXY": address, **plain}) == plain
