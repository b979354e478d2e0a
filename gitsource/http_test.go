// SPDX-License-Identifier: Apache-2.0

package gitsource_test

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/theseus-gitops/theseus/gitsource"
)

const (
	userName = "bot"
	password = "s3cret-pass/word"
	token    = "t0ken-abcdef"
)

// gitHTTP serves an origin with git's own http-backend.
type gitHTTP struct {
	*httptest.Server
	url string
	// dropAnswer swallows that many answers to a push, after the push is done.
	dropAnswer atomic.Int32
	// refuse gives an answer instead of git, when set.
	refuse atomic.Pointer[func(http.ResponseWriter)]
	pushes atomic.Int32
}

func serveHTTP(t *testing.T, o *origin, secure bool, allowed func(*http.Request) bool) *gitHTTP {
	t.Helper()
	backend := &cgi.Handler{
		Path: filepath.Join(runGit(t, o.root, "--exec-path"), "git-http-backend"), Root: "/",
		Env: []string{"GIT_PROJECT_ROOT=" + o.root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null"},
	}
	s := &gitHTTP{}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuse := s.refuse.Load(); refuse != nil {
			(*refuse)(w)
			return
		}
		if !allowed(r) {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "you sent "+r.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "git-receive-pack") {
			s.pushes.Add(1)
			if s.dropAnswer.Add(-1) >= 0 {
				backend.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			}
		}
		backend.ServeHTTP(w, r)
	})
	if secure {
		s.Server = httptest.NewTLSServer(handler)
	} else {
		s.Server = httptest.NewServer(handler)
	}
	t.Cleanup(s.Close)
	s.url = s.URL + "/fleet.git"
	return s
}

func anyone(*http.Request) bool { return true }

func basicOnly(r *http.Request) bool {
	user, pass, ok := r.BasicAuth()
	return ok && user == userName && pass == password
}

func bearerOnly(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+token }

// options gives access to the server with the Secret's data and the server's own CA.
func (s *gitHTTP) options(t *testing.T, o *origin, data map[string]string) gitsource.Options {
	t.Helper()
	secret := map[string][]byte{}
	if s.Certificate() != nil {
		secret["ca.crt"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	}
	for key, value := range data {
		secret[key] = []byte(value)
	}
	auth, err := gitsource.AuthFromSecret(s.url, secret)
	if err != nil {
		t.Fatal(err)
	}
	options := o.options()
	options.URL, options.Auth = s.url, auth
	return options
}

func TestHTTPSReadsAndCommits(t *testing.T) {
	for name, c := range map[string]struct {
		allowed func(*http.Request) bool
		secret  map[string]string
	}{
		"anonymous": {anyone, nil},
		"basic":     {basicOnly, map[string]string{"username": userName, "password": password + "\n"}},
		"bearer":    {bearerOnly, map[string]string{"bearerToken": token}},
	} {
		t.Run(name, func(t *testing.T) {
			o := seeded(t, map[string]string{"fleet.yaml": "x"})
			if name == "anonymous" {
				o.git("config", "http.receivepack", "true")
			}
			s := serveHTTP(t, o, true, c.allowed)
			repo := mustOpen(t, s.options(t, o, c.secret))
			wantSlice(t, "files", paths(headFiles(t, repo)), []string{"fleet.yaml"})
			result := mustCommit(t, repo, request(set("a", "1")))
			wantEqual(t, "head", o.git("rev-parse", statusBranch), string(result.Revision))
			wantEqual(t, "again", mustCommit(t, repo, request(set("a", "1"))).Changed, false)
			o.git("fsck", "--strict", "--no-dangling")
		})
	}
}

func TestHTTPWrongCredentials(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	s := serveHTTP(t, o, true, basicOnly)
	for name, secret := range map[string]map[string]string{
		"none": nil, "password": {"username": userName, "password": "wr0ng"}, "bearer": {"bearerToken": "wr0ng"},
	} {
		repo := mustOpen(t, s.options(t, o, secret))
		_, err := repo.Head(t.Context())
		_, errCommit := repo.Commit(t.Context(), request(set("a", "1")))
		for _, err := range []error{err, errCommit} {
			if !errors.Is(err, gitsource.ErrAuth) {
				t.Errorf("%s: got %v, want ErrAuth", name, err)
			}
			hint := "check that the token"
			if secret == nil {
				hint = "--repo-secret"
			}
			wantSays(t, err, s.url, "401", hint)
			wantNoSecrets(t, err, "wr0ng", "Ym90OndyMG5n")
		}
	}
}

func wantNoSecrets(t *testing.T, err error, secrets ...string) {
	t.Helper()
	for e := err; e != nil; e = errors.Unwrap(e) {
		for _, text := range []string{e.Error(), fmt.Sprintf("%+v", e), fmt.Sprintf("%#v", e)} {
			for _, secret := range secrets {
				if strings.Contains(text, secret) {
					t.Errorf("secret %q in %q", secret, text)
				}
			}
		}
	}
}

func TestHTTPNoWriteAccess(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	o.git("config", "http.receivepack", "false")
	repo := mustOpen(t, serveHTTP(t, o, true, anyone).options(t, o, nil))
	result, err := repo.Commit(t.Context(), request(set("a", "1")))
	if !errors.Is(err, gitsource.ErrAuth) || result.Attempts != 1 {
		t.Errorf("got %+v, %v; want ErrAuth at the first try", result, err)
	}
	wantSays(t, err, "403", "write access")
}

func TestHTTPMissingRepository(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	options := serveHTTP(t, o, true, anyone).options(t, o, nil)
	options.URL += "-not"
	_, err := mustOpen(t, options).Head(t.Context())
	if !errors.Is(err, gitsource.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	wantSays(t, err, "404", "check the URL", "--repo-secret")
}

func TestHTTPServerErrorsAreTransient(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	s := serveHTTP(t, o, true, anyone)
	repo := mustOpen(t, s.options(t, o, nil))
	refuse := func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	s.refuse.Store(&refuse)
	_, err := repo.Head(t.Context())
	var e *gitsource.Error
	if !errors.As(err, &e) || e.Kind != nil {
		t.Fatalf("got %v, want a transient *Error", err)
	}
	wantEqual(t, "retry after", e.RetryAfter, 7*time.Second)
	wantSays(t, err, "429")

	html := func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>maintenance</html>")) }
	s.refuse.Store(&html)
	if _, err = repo.Head(t.Context()); !errors.As(err, &e) || e.Kind != nil {
		t.Errorf("got %v, want a transient *Error", err)
	}
}

func TestHTTPLostAnswerIsRecognised(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	s := serveHTTP(t, o, true, anyone)
	repo := mustOpen(t, s.options(t, o, nil))
	s.dropAnswer.Store(1)
	result := mustCommit(t, repo, request(set("a", "1")))
	wantEqual(t, "changed", result.Changed, true)
	wantEqual(t, "attempts", result.Attempts, 1)
	wantEqual(t, "pushes", s.pushes.Load(), 1)
	wantEqual(t, "head", o.git("rev-parse", statusBranch), string(result.Revision))
}

// The answer is lost and the push was refused: it is tried again, within bounds.
func TestHTTPLostRefusalIsTriedAgain(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	o.hook("pre-receive", `cat >/dev/null; [ -e once ] && exit 0; touch once; exit 1`)
	s := serveHTTP(t, o, true, anyone)
	repo := mustOpen(t, s.options(t, o, nil))
	s.dropAnswer.Store(1)
	wantEqual(t, "attempts", mustCommit(t, repo, request(set("a", "1"))).Attempts, 2)

	o.hook("pre-receive", `cat >/dev/null; exit 1`)
	s.dropAnswer.Store(100)
	result, err := repo.Commit(t.Context(), request(set("a", "2")))
	var refused *gitsource.PushRefusedError
	if err == nil || errors.As(err, &refused) {
		t.Errorf("got %v; want a transient error, since nobody said no", err)
	}
	wantEqual(t, "attempts", result.Attempts, 5)
}

func TestHTTPProtectedBranch(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	o.hook("pre-receive", `cat >/dev/null; echo "not for `+password+`" >&2; exit 1`)
	s := serveHTTP(t, o, true, basicOnly)
	repo := mustOpen(t, s.options(t, o, map[string]string{"username": userName, "password": password}))
	_, err := repo.Commit(t.Context(), request(set("a", "1")))
	var refused *gitsource.PushRefusedError
	if !errors.As(err, &refused) {
		t.Fatalf("got %v, want *PushRefusedError", err)
	}
	wantSays(t, err, "not for [redacted]")
	wantEqual(t, "pushes", s.pushes.Load(), 1)
}

func TestHTTPSWithUnknownCA(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	options := o.options()
	options.URL = serveHTTP(t, o, true, anyone).url
	_, err := mustOpen(t, options).Head(t.Context())
	if !errors.Is(err, gitsource.ErrConfig) {
		t.Errorf("got %v, want ErrConfig", err)
	}
	wantSays(t, err, "certificate is not trusted", "ca.crt")
}

func TestPlainHTTPNeedsTheOption(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	s := serveHTTP(t, o, false, basicOnly)
	options := s.options(t, o, map[string]string{"username": userName, "password": password})
	_, err := gitsource.Open(options)
	if !errors.Is(err, gitsource.ErrConfig) {
		t.Fatalf("got %v, want ErrConfig", err)
	}
	wantSays(t, err, "plain http", "use https", "--allow-insecure-http")
	options.AllowInsecureHTTP = true
	wantSlice(t, "files", paths(headFiles(t, mustOpen(t, options))), []string{"fleet.yaml"})
}

func TestCredentialsStayAtTheirOrigin(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	var leaked atomic.Bool
	other := serveHTTP(t, o, true, func(r *http.Request) bool {
		leaked.Store(leaked.Load() || r.Header.Get("Authorization") != "")
		return true
	})
	first := serveHTTP(t, o, true, anyone)
	redirect := func(w http.ResponseWriter) {
		w.Header().Set("Location", other.url+"/info/refs?service=git-upload-pack")
		w.WriteHeader(http.StatusFound)
	}
	first.refuse.Store(&redirect)
	repo := mustOpen(t, first.options(t, o, map[string]string{"username": userName, "password": password}))
	wantSlice(t, "files", paths(headFiles(t, repo)), []string{"fleet.yaml"})
	wantEqual(t, "leaked", leaked.Load(), false)
}

func TestHTTPServerThatNeverAnswers(t *testing.T) {
	o := seeded(t, map[string]string{"fleet.yaml": "x"})
	s := serveHTTP(t, o, true, anyone)
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	wait := func(http.ResponseWriter) { <-hang }
	s.refuse.Store(&wait)
	options := s.options(t, o, nil)
	options.Timeout = 50 * time.Millisecond
	_, err := mustOpen(t, options).Head(t.Context())
	wantSays(t, err, "no complete answer within 50ms")
}
