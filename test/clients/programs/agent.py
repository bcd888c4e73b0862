"""An agent on the SDK of the protocol for Python. It prints the address to allow it, reads what the redirect brings, and uses tools."""

import asyncio
import json
import os
from urllib.parse import parse_qs

from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.shared.auth import OAuthClientMetadata


class Memory:
    def __init__(self):
        self.tokens = None
        self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def show(url):
    print(url, flush=True)


async def read():
    query = parse_qs(await asyncio.to_thread(input))
    return AuthorizationCodeResult(code=query["code"][0], state=query["state"][0], iss=query.get("iss", [None])[0])


async def main():
    url = os.environ["POSTERN_URL"] + "/mcp"
    metadata = OAuthClientMetadata(client_name="Agent in Python", redirect_uris=["http://127.0.0.1:45124/callback"])
    auth = OAuthClientProvider(url, metadata, Memory(), redirect_handler=show, callback_handler=read)
    async with create_mcp_http_client(auth=auth) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            tools = (await client.list_tools()).tools
            context = (await client.call_tool("get_context", {})).structured_content
            site = await client.call_tool("get_site", {"siteId": os.environ["POSTERN_SITE"]})
            missing = await client.call_tool("get_site", {"siteId": "site_missing"})
            told = {
                "tools": sorted(tool.name for tool in tools),
                "person": context["person"]["name"],
                "site": site.structured_content["name"],
                "refusal": json.loads(missing.content[0].text)["error"]["code"],
            }
            print(json.dumps(told), flush=True)


asyncio.run(main())
