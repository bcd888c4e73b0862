// Calls the API through the client that was made for Go, and prints what it parsed.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	postern "postern"
)

func must[T any](value T, _ any, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	settings := postern.NewConfiguration()
	settings.Servers = postern.ServerConfigurations{{URL: os.Getenv("POSTERN_URL")}}
	client := postern.NewAPIClient(settings)
	ctx := context.WithValue(context.Background(), postern.ContextAccessToken, os.Getenv("POSTERN_KEY"))

	caller := must(client.AuthenticationAPI.ReadAuthContext(ctx).Execute()).Data
	wanted := postern.NewCreateRepositoryRequest("acme/go", "https://git.example/acme/go.git")
	created := must(client.RepositoriesAPI.CreateRepository(ctx).CreateRepositoryRequest(*wanted).Execute()).Data
	repositories := must(client.RepositoriesAPI.ListRepositories(ctx).Search("acme/go").Execute())
	repository := must(client.RepositoriesAPI.GetRepository(ctx, "acme", "go").Execute()).Data
	capabilities := must(client.SitesAPI.ReadSiteCapabilities(ctx).Execute()).Data

	body := postern.NewSiteCreate()
	body.SetName("from go")
	body.SetVisibility("public")
	site := must(client.SitesAPI.CreateSite(ctx).SiteCreate(*body).Execute()).Data
	listed := must(client.SitesAPI.ListSites(ctx).Search("from go").Execute())
	got := must(client.SitesAPI.GetSite(ctx, site.Id).Execute()).Data
	versions := must(client.SiteVersionsAPI.ListSiteVersions(ctx, os.Getenv("POSTERN_SITE")).Execute())
	served := must(client.SitesAPI.GetSite(ctx, os.Getenv("POSTERN_SITE")).Execute()).Data
	extended := must(client.SitesAPI.ExtendSite(ctx, site.Id).Execute()).Data
	deleted := must(client.SitesAPI.DeleteSite(ctx, site.Id).Execute()).Data

	_, _, err := client.SitesAPI.GetSite(ctx, "nothingthere").Execute()
	var failed *postern.GenericOpenAPIError
	if !errors.As(err, &failed) {
		panic(err)
	}
	failure := failed.Model().(postern.GetSite404Response)

	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"keyName":             *caller.KeyName.Get(),
		"created":             created.FullName,
		"repositories":        repositories.Metadata.Pagination.Items,
		"environmentDefaults": repository.EnvironmentDefaults,
		"maxUploadBytes":      capabilities.Upload.MaxUploadBytes,
		"site":                []any{site.Name, site.Status},
		"listed":              listed.Data[0].Id == site.Id,
		"noVersion":           got.Version.Get() == nil,
		"restorableUntil":     got.RestorableUntil.Get(),
		"versions":            versions.Data[0].Number,
		"served":              served.Version.Get().Number,
		"extended":            extended.ExpiresAt.Get().After(*site.ExpiresAt.Get()),
		"deleted":             []any{deleted.Status, deleted.RestorableUntil.Get() != nil},
		"failure":             []any{failure.Error.Code, failure.Error.Message != ""},
	})
}
