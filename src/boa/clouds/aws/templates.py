"""Launch templates: one per GPU type, a new version whenever what it says has changed."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from boa.clouds.aws import shapes
from boa.clouds.aws.calls import Api, AwsFailed
from boa.model.provider_settings import AwsSettings
from boa.model.workload import GpuType
from boa.units import GpuName

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Found:
    """A template as AWS has it."""

    id: str
    name: str
    gpu: GpuName
    contents: str
    """Which its newest version says."""
    version: int


class Templates:
    def __init__(
        self, api: Api, settings: AwsSettings, gpu_types: Mapping[GpuName, GpuType], owner: str
    ) -> None:
        self._api, self._settings, self._owner = api, settings, owner
        self._data = {
            name: shapes.template_data(settings, owner, gpu) for name, gpu in gpu_types.items()
        }
        self._ready: dict[GpuName, dict[str, str]] = {}

    def ready(self, gpu: GpuName) -> Mapping[str, str]:
        """The version that says what is configured; made, if there is none."""
        if gpu not in self._ready:
            said = shapes.contents(self._data[gpu])
            found = self._named(gpu)
            if found is None:
                made = self._api.change("create_launch_template", **self.creation(gpu))
                id, version = str(made["LaunchTemplate"]["LaunchTemplateId"]), 1
            elif found.contents == said:
                id, version = found.id, found.version
            else:
                id, version = found.id, self._change(found.id, self._data[gpu], said)
            self._ready[gpu] = _version(id, version)
        return self._ready[gpu]

    def existing(self, gpu: GpuName) -> Mapping[str, str] | None:
        """The newest version that there is, whatever it says."""
        found = self._named(gpu)
        return None if found is None else _version(found.id, found.version)

    def forget(self, gpu: GpuName) -> None:
        """Somebody may have deleted it: to be looked for again."""
        self._ready.pop(gpu, None)

    def wanting(self) -> dict[GpuName, str]:
        """Types whose template is to be created or changed."""
        found = {one.name: one for one in self.ours()}
        wanting = {}
        for gpu, data in self._data.items():
            one = found.get(shapes.template_name(self._owner, gpu))
            if one is None:
                wanting[gpu] = "create"
            elif one.contents != shapes.contents(data):
                wanting[gpu] = "change"
        return wanting

    def ours(self) -> list[Found]:
        return self._found(Filters=[{"Name": f"tag:{shapes.OWNER}", "Values": [self._owner]}])

    def unused(self) -> list[Found]:
        """Launch templates of types that are no longer configured."""
        names = {shapes.template_name(self._owner, gpu) for gpu in self._data}
        return [one for one in self.ours() if one.name not in names]

    def sweep(self) -> None:
        for one in self.unused():
            self._api.change("delete_launch_template", LaunchTemplateId=one.id)
            _log.info("deleted the launch template %s: no GPU type is so called now", one.name)

    def creation(self, gpu: GpuName) -> dict[str, Any]:
        """The request that creates the template of a type that has none yet."""
        tags = shapes.tags(self._settings, self._owner, gpu)
        return {
            "LaunchTemplateName": shapes.template_name(self._owner, gpu),
            "VersionDescription": shapes.contents(self._data[gpu]),
            "LaunchTemplateData": self._data[gpu],
            "TagSpecifications": shapes.tagged(tags, "launch-template"),
        }

    def _change(self, id: str, data: dict[str, Any], said: str) -> int:
        made = self._api.change(
            "create_launch_template_version",
            LaunchTemplateId=id,
            VersionDescription=said,
            LaunchTemplateData=data,
        )
        return int(made["LaunchTemplateVersion"]["VersionNumber"])

    def _named(self, gpu: GpuName) -> Found | None:
        name = shapes.template_name(self._owner, gpu)
        found = self._found(Filters=[{"Name": "launch-template-name", "Values": [name]}])
        return found[0] if found else None

    def _found(self, **which: Any) -> list[Found]:
        pages = self._api.pages("describe_launch_templates", **which)
        return [self._newest(one) for page in pages for one in page["LaunchTemplates"]]

    def _newest(self, said: Mapping[str, Any]) -> Found:
        id = said["LaunchTemplateId"]
        newest = self._api.read(
            "describe_launch_template_versions", LaunchTemplateId=id, Versions=["$Latest"]
        )["LaunchTemplateVersions"][0]
        tags = {tag["Key"]: tag["Value"] for tag in said.get("Tags", ())}
        return Found(
            id=id,
            name=said["LaunchTemplateName"],
            gpu=tags.get(shapes.GPU, ""),
            contents=newest.get("VersionDescription", ""),
            version=newest["VersionNumber"],
        )


def _version(id: str, number: int) -> dict[str, str]:
    return {"LaunchTemplateId": id, "Version": str(number)}


def is_missing(failed: AwsFailed) -> bool:
    return failed.code.startswith("InvalidLaunchTemplate")
