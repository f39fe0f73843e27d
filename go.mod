module github.com/posthaste-dev/posthaste

// What Heroku's buildpack builds for the Procfile.
// +heroku goVersion go1.26
// +heroku install ./cmd/...

go 1.25.0
