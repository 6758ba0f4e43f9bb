"""Fields of `boa.yaml` on who reaches the service: its token, TLS, and proxies it believes."""

from boa.formats.containers import list_of
from boa.formats.parts import FILE
from boa.formats.settings import setting
from boa.formats.shapes import Field, choice, text, then
from boa.model.access import ROLES


def _is_network(value: str) -> bool:
    from ipaddress import ip_network

    try:
        return bool(ip_network(value))
    except ValueError:
        return False


ACCESS = (
    Field(
        "token_file",
        FILE,
        "A file with the token that requests need, closed to other users.",
        otherwise="`$BOA_TOKEN`, else one that the service makes: `DATA_DIR/token`",
    ),
    Field(
        "tls_cert",
        FILE,
        "Certificate and chain (PEM): the service is then reached over https.",
        otherwise="no TLS",
    ),
    Field(
        "tls_key",
        FILE,
        "The certificate's private key (PEM).",
        otherwise="in `tls_cert`",
    ),
    Field(
        "trust_user_header",
        text(
            "the name of a header, such as X-Forwarded-User",
            pattern=r"^[A-Za-z0-9-]{1,100}$",
            words="name of a header",
        ),
        "Where a reverse proxy says who asks; see [proxy.md](proxy.md).",
        otherwise="no proxy is believed",
    ),
    Field(
        "trust_proxy",
        then(
            list_of(
                text(
                    "an address or a network, such as 10.0.0.7 or 10.0.0.0/24",
                    pattern=r"^[0-9A-Fa-f.:]+(/[0-9]{1,3})?$",
                    words="address or network",
                    fits=_is_network,
                ),
                unique="an address",
            ),
            tuple,
        ),
        "Proxies that are believed. One on this machine has to send the service's token too.",
        otherwise="none",
    ),
    setting(
        "trust_role",
        choice(ROLES),
        "What users may do whom a proxy names, and who have no token of that name.",
    ),
)
