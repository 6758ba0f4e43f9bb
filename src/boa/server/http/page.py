"""The page at `/` where no dashboard was built: complete in itself."""

from html import escape

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>BOA Constrictor</title>
<style>
  body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 42rem; margin: 4rem auto;
         padding: 0 1rem; color: #1c2733; background: #fff; }}
  code {{ font-size: .95em; background: #eef2f5; padding: .1em .35em; border-radius: .25em; }}
  a {{ color: #0b6bcb; }}
  @media (prefers-color-scheme: dark) {{
    body {{ color: #dbe4ec; background: #12181f; }} code {{ background: #1f2933; }}
    a {{ color: #6cb6ff; }} }}
</style>
<h1>BOA Constrictor {version}</h1>
<p>The shortest average job completion time that a GPU budget can buy: this is a running service.
<ul>
  <li><a href="api/openapi.json">OpenAPI</a> of the REST API under <code>/api/v1</code>
  <li><a href="api/v1/health">Health</a>
  <li><a href="metrics">Metrics</a> for Prometheus
</ul>
<p>No dashboard was built into this one. In the source folder <code>make web</code> builds it (needs
Node 20.19, 22.12 or newer); <code>boa serve</code> shows it from its next start.
<p>At the terminal: <code>boa ps</code>, <code>boa submit --help</code>, <code>boa cost</code>.
</html>
"""


def page(version: str) -> str:
    return _PAGE.format(version=escape(version))
