// SPDX-License-Identifier: Apache-2.0

package gitsource_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/gitsource"
)

func TestOpenRefusesBadURLsWithoutRepeatingThem(t *testing.T) {
	for name, c := range map[string]struct{ url, says string }{
		"empty":             {"", "empty"},
		"password":          {"https://bot:hunter2@example.com/x.git", "holds a password"},
		"token as user":     {"https://hunter2@example.com/x.git", "user name or token"},
		"ssh password":      {"ssh://git:hunter2@example.com/x.git", "holds a password"},
		"scp-like password": {"git:hunter2@example.com:x.git", "looks like a password"},
		"query":             {"https://example.com/x.git?private_token=hunter2", "? or # part"},
		"fragment":          {"https://example.com/x.git#hunter2", "? or # part"},
		"unparsable":        {"https://bot:hunter2@exa mple.com:port/%zz", "can't be parsed"},
		"bad escape":        {"https://bot:hunter2@example.com/%zz", "can't be parsed"},
		"newline":           {"https://bot:hunter2@example.com/x\n", "control character"},
		"git protocol":      {"git://example.com/x", "git:// is not supported"},
		"ext":               {"ext::sh -c hunter2", "remote helper"},
		"file with a host":  {"file://server/x", "file:///"},
		"no host":           {"https:///x", "no host"},
		"ssh option":        {"ssh://-oProxyCommand=hunter2/x", "starts with -"},
		"ssh without path":  {"ssh://git@example.com", "needs a host and a path"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := gitsource.Open(gitsource.Options{URL: c.url})
			if !errors.Is(err, gitsource.ErrConfig) {
				t.Fatalf("got %v, want ErrConfig", err)
			}
			wantNoSecrets(t, err, "hunter2")
			wantSays(t, err, c.says)
		})
	}
}

func TestOpenRefusesBadOptions(t *testing.T) {
	for name, o := range map[string]gitsource.Options{
		"branch":       {Branch: "a..b"},
		"path":         {Path: "a/../../b"},
		"author":       {Author: gitsource.Identity{Name: "A <b>", Email: "c"}},
		"limit":        {Limits: gitsource.Limits{Files: -1}},
		"retry":        {Retry: gitsource.Retry{Attempts: -1}},
		"time-out":     {Timeout: -1},
		"author line":  {Author: gitsource.Identity{Name: "A\nparent 1", Email: "c"}},
		"author email": {Author: gitsource.Identity{Name: "A", Email: "c>"}},
	} {
		o.URL = t.TempDir()
		if _, err := gitsource.Open(o); !errors.Is(err, gitsource.ErrConfig) {
			t.Errorf("%s: got %v, want ErrConfig", name, err)
		}
	}
}

func TestURLShownHasNoUser(t *testing.T) {
	key := newKey(t, "")
	hosts := []byte("[example.com]:2222,example.com,[2001:db8::1]:2222 " + knownHostsKey(key))
	for url, want := range map[string]string{
		"https://example.com:8443/team/x.git/": "https://example.com:8443/team/x.git",
		"ssh://me@example.com:2222/x.git":      "ssh://example.com:2222/x.git",
		"ssh://me@[2001:db8::1]:2222/x.git":    "ssh://[2001:db8::1]:2222/x.git",
		"me@example.com:team/x.git":            "ssh://example.com/team/x.git",
		"ssh://example.com/~me/x.git":          "ssh://example.com/~me/x.git",
		"file:///srv/x.git":                    "file:///srv/x.git",
		"/srv/x.git":                           "file:///srv/x.git",
	} {
		options := gitsource.Options{URL: url}
		if strings.Contains(url, "ssh:") || strings.Contains(url, "me@") {
			auth, err := gitsource.AuthFromSecret(url, map[string][]byte{"identity": []byte(key.pem), "known_hosts": hosts})
			if err != nil {
				t.Fatalf("%s: %v", url, err)
			}
			options.Auth = auth
		}
		wantEqual(t, url, mustOpen(t, options).URL(), want)
	}
}

func knownHostsKey(key keyPair) string {
	public := key.signer.PublicKey()
	return public.Type() + " " + base64.StdEncoding.EncodeToString(public.Marshal())
}

func TestHTTPSecretErrorsNameTheKey(t *testing.T) {
	for name, c := range map[string]struct {
		data map[string]string
		says string
	}{
		"no password":   {map[string]string{"username": "bot"}, "key password is missing"},
		"no username":   {map[string]string{"password": "hunter2"}, "key username is missing"},
		"both":          {map[string]string{"username": "bot", "password": "hunter2", "bearerToken": "hunter2"}, "bearerToken and username/password"},
		"two lines":     {map[string]string{"bearerToken": "hunter2\nhunter2"}, "key bearerToken: more than one line"},
		"colon":         {map[string]string{"username": "a:b", "password": "hunter2"}, "key username"},
		"no PEM":        {map[string]string{"ca.crt": "hunter2"}, "key ca.crt: no PEM"},
		"no PEM (flux)": {map[string]string{"caFile": "hunter2"}, "key caFile: no PEM"},
		"ssh key only":  {map[string]string{"identity": "hunter2"}, "use an ssh:// URL"},
	} {
		data := map[string][]byte{}
		for k, v := range c.data {
			data[k] = []byte(v)
		}
		_, err := gitsource.AuthFromSecret("https://example.com/x", data)
		if !errors.Is(err, gitsource.ErrConfig) {
			t.Errorf("%s: got %v, want ErrConfig", name, err)
		}
		wantSays(t, err, c.says)
		wantNoSecrets(t, err, "hunter2")
	}
}

func TestAuthPrintsNoSecret(t *testing.T) {
	auth, err := gitsource.AuthFromSecret("https://example.com/x", map[string][]byte{"username": []byte("bot"), "password": []byte("hunter2")})
	if err != nil {
		t.Fatal(err)
	}
	options := gitsource.Options{URL: "https://example.com/x", Auth: auth}
	var logged bytes.Buffer
	slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "auth", auth, "options", options)
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "auth", auth)
	for _, text := range []string{fmt.Sprint(auth), fmt.Sprintf("%+v", options), fmt.Sprintf("%#v", auth), fmt.Sprintf("%v", &auth), logged.String()} {
		if strings.Contains(text, "hunter2") {
			t.Errorf("secret in %q", text)
		}
	}
}

func TestRefusalMessageIsOneShortLine(t *testing.T) {
	o := newOrigin(t)
	o.hook("pre-receive", `cat >/dev/null; for i in $(seq 1000); do printf 'word \033]0;title\007 \n'; done; exit 1`)
	_, err := o.open().Commit(t.Context(), request(set("a", "1")))
	if err == nil || len(err.Error()) > 1500 || strings.ContainsAny(err.Error(), "\n\x1b\x07") {
		t.Errorf("want one short line, got %d bytes: %q", len(fmt.Sprint(err)), err)
	}
}
