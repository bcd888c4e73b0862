"""Calls the API through the client that was made for Python, and prints what it parsed."""

import json
import os

import postern

settings = postern.Configuration(host=os.environ["POSTERN_URL"], access_token=os.environ["POSTERN_KEY"])
served_id = os.environ["POSTERN_SITE"]

with postern.ApiClient(settings) as client:
    sites = postern.SitesApi(client)
    repositories = postern.RepositoriesApi(client)

    caller = postern.AuthenticationApi(client).read_auth_context().data
    # This generator forgets that a required map may be null: a repository without defaults does not parse.
    wanted = postern.CreateRepositoryRequest(
        full_name="acme/python", clone_url="https://git.example/acme/python.git", environment_defaults={}
    )
    created = repositories.create_repository(wanted).data
    found = repositories.list_repositories(search="acme/python")
    repository = repositories.get_repository("acme", "python").data
    capabilities = sites.read_site_capabilities().data

    site = sites.create_site(postern.SiteCreate(name="from python", visibility="public")).data
    listed = sites.list_sites(search="from python")
    got = sites.get_site(site.id).data
    versions = postern.SiteVersionsApi(client).list_site_versions(served_id)
    served = sites.get_site(served_id).data
    extended = sites.extend_site(site.id).data
    deleted = sites.delete_site(site.id).data
    try:
        sites.get_site("nothingthere")
        raise AssertionError("There is such a site.")
    except postern.exceptions.NotFoundException as error:
        failure = error.data.error

print(
    json.dumps(
        {
            "keyName": caller.key_name,
            "created": created.full_name,
            "repositories": found.metadata.pagination.items,
            "environmentDefaults": repository.environment_defaults,
            "maxUploadBytes": capabilities.upload.max_upload_bytes,
            "site": [site.name, site.status],
            "listed": listed.data[0].id == site.id,
            "noVersion": got.version is None,
            "restorableUntil": got.restorable_until,
            "versions": versions.data[0].number,
            "served": served.version.number,
            "extended": extended.expires_at > site.expires_at,
            "deleted": [deleted.status, deleted.restorable_until is not None],
            "failure": [failure.code, failure.message != ""],
        }
    )
)
