"""`runhost runners`: what can be run."""

from typing import TYPE_CHECKING

from runhost.cli.host import ApiKey, ApiUrl, AsJson, talk
from runhost.cli.output import cell, new_table, note, one_line, results, write_json

if TYPE_CHECKING:
    from runhost.client import RunhostClient
    from runhost.protocol import JsonObject


def runners(api: ApiUrl = None, key: ApiKey = None, as_json: AsJson = False) -> None:
    """List the runners that workers offer, with what an agent's config for them may hold.

    A name with a star has to be there. `runhost agents put --runner RUNNER`
    makes an agent of one.
    """

    async def command(client: "RunhostClient") -> None:
        found = (await client.runners()).items
        if as_json:
            for runner in found:
                write_json(runner.model_dump(mode="json"))
            return
        if not found:
            note("No worker offers a runner. Is one running? `runhost worker` starts one.")
            return
        table = new_table("runner", "version", "config", "task queue", "last seen (UTC)")
        for runner in found:
            descriptor = runner.descriptor
            name = descriptor.id + (" (stale)" if runner.is_stale else "")
            config = ", ".join(_item(item) for item in descriptor.config_schema)
            cells = (descriptor.plugin_version, config, runner.task_queue, runner.last_seen_at)
            table.add_row(cell(name), *map(cell, cells))
        results().print(table)

    talk(api, key, command)


def _item(item: "JsonObject") -> str:
    return one_line(str(item.get("name"))) + ("*" if item.get("required") is True else "")
