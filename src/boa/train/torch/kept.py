"""Plain values that checkpoints keep for a script: its best accuracy so far, say."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from boa.train.torch.given import is_plain


class Kept:
    """Attributes by the names that `resume` was given; those of rank 0 are saved."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_values", dict(values))

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(self._unknown(name)) from None

    def __setattr__(self, name: str, value: Any) -> None:
        values = self.__dict__["_values"]
        if name not in values:
            raise AttributeError(self._unknown(name))
        if not is_plain(value):
            raise TypeError(
                f"kept.{name}: got a {type(value).__name__}; expected a plain value (numbers, "
                "text, tensors, lists of them)"
            )
        values[name] = value

    def __repr__(self) -> str:
        return f"Kept({', '.join(f'{n}={v!r}' for n, v in self.state_dict().items())})"

    def state_dict(self) -> dict[str, Any]:
        """As they are now."""
        return deepcopy(self.__dict__["_values"])

    def load_state_dict(self, values: Mapping[str, Any]) -> None:
        """Those of a checkpoint; what is not ours any more is left."""
        own = self.__dict__["_values"]
        own.update({name: value for name, value in values.items() if name in own})

    def _unknown(self, name: str) -> str:
        names = ", ".join(self.__dict__["_values"]) or "none"
        return f"kept.{name}: was not given to resume(); expected a value given by name ({names})"
