// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/theseus-gitops/theseus/reconcile/image"
	"github.com/theseus-gitops/theseus/reconcile/skew"
)

const digest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]image.Ref{
		"registry.k8s.io/coredns/coredns:v1.14.6":         {Repository: "registry.k8s.io/coredns", Name: "coredns", Tag: "v1.14.6"},
		"k8s.gcr.io/coredns:1.6.7":                        {Repository: "k8s.gcr.io", Name: "coredns", Tag: "1.6.7"},
		"coredns:1.6.2":                                   {Name: "coredns", Tag: "1.6.2"},
		"coredns":                                         {Name: "coredns"},
		"docker.io/coredns:1.6.2":                         {Repository: "docker.io", Name: "coredns", Tag: "1.6.2"},
		"coredns/coredns:1.6.2":                           {Repository: "coredns", Name: "coredns", Tag: "1.6.2"},
		"myrepo/coredns:1.7.2-foobar.1":                   {Repository: "myrepo", Name: "coredns", Tag: "1.7.2-foobar.1"},
		"localhost:5000/a/b/dns:v1.8.6_vmware.1_b2":       {Repository: "localhost:5000/a/b", Name: "dns", Tag: "v1.8.6_vmware.1_b2"},
		"[2001:db8::1]:5000/coredns:v1.14.6":              {Repository: "[2001:db8::1]:5000", Name: "coredns", Tag: "v1.14.6"},
		"globalRepo/sub-path/coredns:1.7.2":               {Repository: "globalRepo/sub-path", Name: "coredns", Tag: "1.7.2"},
		"repo.example/coredns:v1.11.1@" + digest:          {Repository: "repo.example", Name: "coredns", Tag: "v1.11.1", Digest: digest},
		"repo.example/coredns@" + digest:                  {Repository: "repo.example", Name: "coredns", Digest: digest},
		"k8s.gcr.io/coredns":                              {Repository: "k8s.gcr.io", Name: "coredns"},
		"repo.example/coredns@sha512:" + repeat("0", 128): {Repository: "repo.example", Name: "coredns", Digest: "sha512:" + repeat("0", 128)},
	} {
		got, err := image.Parse(text)
		if err != nil || got != want {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", text, got, err, want)
		}
		if got.String() != text {
			t.Errorf("Parse(%q).String() = %q", text, got)
		}
	}
	for _, text := range []string{
		"", ":", ":v1", "@" + digest, "k8s.gcr.io/asd:1123/asd:coredns:1.6.1", "repo/coredns:", "repo/coredns@", "repo/coredns@sha256:1", "repo/coredns@md5:" + repeat("0", 32),
		"repo//coredns:1", "/coredns:1", "coredns/:1", "%%%/coredns:1", "repo/Coredns:1", "repo/coredns:1 ", "repo/coredns:v1+x", "https://repo/coredns:1", repeat("a", 300),
	} {
		var syntax *image.SyntaxError
		if got, err := image.Parse(text); !errors.As(err, &syntax) || syntax.Text != text {
			t.Errorf("Parse(%q) = %+v, %v; want a SyntaxError", text, got, err)
		}
	}
}

func repeat(s string, n int) string { return strings.Repeat(s, n) }

// What Parse accepts, it reads again from what String writes; Target never panics, and never gives what Parse refuses.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{"k8s.gcr.io/coredns:1.6.2", "coredns", "a/b@" + digest, "k8s.gcr.io/asd:1123/asd:coredns:1.6.1", "registry.k8s.io/coredns/coredns:v1.14.6@" + digest} {
		f.Add(s, "registry.k8s.io/", "v1.8.0")
	}
	f.Fuzz(func(t *testing.T, text, repository, tag string) {
		ref, err := image.Parse(text)
		if err != nil {
			return
		}
		if again, err := image.Parse(ref.String()); err != nil || again != ref || ref.String() != text {
			t.Fatalf("%q reads as %+v, which reads as %+v, %v", text, ref, again, err)
		}
		target, err := image.Target(ref, image.Want{Repository: repository, Tag: tag})
		if err != nil {
			return
		}
		if again, err := image.Parse(target.String()); err != nil || again != target {
			t.Fatalf("target %+v reads as %+v, %v", target, again, err)
		}
		// Asking again from the target changes nothing: a finished upgrade is seen as finished.
		if again, err := image.Target(target, image.Want{Repository: repository, Tag: tag}); tag != "" && (err != nil || again != target) {
			t.Fatalf("target %s becomes %s, %v", target, again, err)
		}
	})
}

type row struct {
	name, live string
	want       image.Want
	target     string
}

func (r row) run(t *testing.T) {
	t.Helper()
	live, err := image.Parse(r.live)
	if err != nil {
		t.Fatal(err)
	}
	got, err := image.Target(live, r.want)
	if err != nil || got.String() != r.target {
		t.Errorf("%s with %+v: %s, %v; want %s", r.live, r.want, got, err, r.target)
	}
}

// Cluster API's table of target computations and the image rows of its end-to-end table.
func TestTarget(t *testing.T) {
	t.Parallel()
	const folder = "registry.gcr.io/some-folder/coredns:1.6.2"
	for _, r := range []row{
		{"dns repository", folder, image.Want{Repository: "myrepo", Tag: "1.7.2-foobar.1"}, "myrepo/coredns:1.7.2-foobar.1"},
		{"cluster repository", folder, image.Want{ClusterRepository: "globalRepo/sub-path", Tag: "1.7.2-foobar.1"}, "globalRepo/sub-path/coredns:1.7.2-foobar.1"},
		{"dns repository wins", folder, image.Want{Repository: "dnsRepo", ClusterRepository: "globalRepo", Tag: "1.7.2-foobar.1"}, "dnsRepo/coredns:1.7.2-foobar.1"},
		{"k8s.gcr.io at 1.8.0", "k8s.gcr.io/coredns:1.6.2", image.Want{Tag: "1.8.0"}, "k8s.gcr.io/coredns/coredns:1.8.0"},
		{"registry.k8s.io at 1.8.0", "registry.k8s.io/coredns:1.6.2", image.Want{Tag: "1.8.0"}, "registry.k8s.io/coredns/coredns:1.8.0"},
		{"8: another folder", "k8s.gcr.io/some-folder/coredns:1.6.2", image.Want{Repository: "k8s.gcr.io/some-repo", Tag: "1.7.2"}, "k8s.gcr.io/some-repo/coredns:1.7.2"},
		{"9: a custom repository keeps its path", "k8s.gcr.io/some-repo/coredns:1.7.0", image.Want{Repository: "k8s.gcr.io/some-repo", Tag: "1.8.0"}, "k8s.gcr.io/some-repo/coredns:1.8.0"},
		{"10: before 1.8.0", "k8s.gcr.io/coredns:1.6.7", image.Want{Repository: "k8s.gcr.io", Tag: "1.7.0"}, "k8s.gcr.io/coredns:1.7.0"},
		{"11: already there", "k8s.gcr.io/coredns:1.7.0", image.Want{Repository: "k8s.gcr.io", Tag: "1.7.0"}, "k8s.gcr.io/coredns:1.7.0"},
		{"12: the name moves", "k8s.gcr.io/coredns:1.7.0", image.Want{Repository: "k8s.gcr.io", Tag: "v1.8.0"}, "k8s.gcr.io/coredns/coredns:v1.8.0"},
		{"13: already moved", "k8s.gcr.io/coredns/coredns:v1.8.0", image.Want{Repository: "k8s.gcr.io", Tag: "v1.8.0"}, "k8s.gcr.io/coredns/coredns:v1.8.0"},
		{"13: already moved, without a wanted repository", "k8s.gcr.io/coredns/coredns:v1.8.1", image.Want{Tag: "v1.8.1"}, "k8s.gcr.io/coredns/coredns:v1.8.1"},
		{"default to default", "registry.k8s.io/coredns/coredns:v1.14.2", image.Want{Tag: "v1.14.6"}, "registry.k8s.io/coredns/coredns:v1.14.6"},
		{"from a mirror back to the default", "mirror.example/coredns:v1.14.2", image.Want{Repository: "registry.k8s.io", Tag: "v1.14.6"}, "registry.k8s.io/coredns/coredns:v1.14.6"},
		{"from the default to a mirror", "registry.k8s.io/coredns/coredns:v1.14.2", image.Want{Repository: "mirror.example", Tag: "v1.14.6"}, "mirror.example/coredns:v1.14.6"},
		{"a trailing slash", "registry.k8s.io/coredns/coredns:v1.14.2", image.Want{Repository: "mirror.example/k8s/", Tag: "v1.14.6"}, "mirror.example/k8s/coredns:v1.14.6"},
		{"a pre-release of 1.8.0 counts as 1.8.0", "k8s.gcr.io/coredns:1.7.0", image.Want{Tag: "v1.8.0-rc.1"}, "k8s.gcr.io/coredns/coredns:v1.8.0-rc.1"},
		{"another name does not move", "registry.k8s.io/mydns:1.7.0", image.Want{Tag: "v1.8.0"}, "registry.k8s.io/mydns:v1.8.0"},
		{"no v is added", "registry.k8s.io/coredns/coredns:v1.14.2", image.Want{Tag: "1.14.6"}, "registry.k8s.io/coredns/coredns:1.14.6"},
		{"two underscores", "r.example/coredns:v1.8.6_vmware.1_b2", image.Want{Tag: "v1.9.3_vmware.1_b7"}, "r.example/coredns:v1.9.3_vmware.1_b7"},
		{"docker.io in one part", "coredns:1.6.2", image.Want{Tag: "1.7.0"}, "coredns:1.7.0"},
		{"without a host, as a first run may have left it", "myrepo/coredns:1.7.2", image.Want{Repository: "myrepo", Tag: "1.7.2"}, "myrepo/coredns:1.7.2"},
		{"an unknown version, another repository", "a.example/coredns:v99.0.0", image.Want{Repository: "b.example", Tag: "v99.0.0"}, "b.example/coredns:v99.0.0"},
	} {
		t.Run(r.name, func(t *testing.T) { t.Parallel(); r.run(t) })
	}
}

// Where we differ from Cluster API's control plane on purpose.
func TestTargetDiffersOnPurpose(t *testing.T) {
	t.Parallel()
	const pinned = "repo.example/coredns:v1.11.1@" + digest
	for _, r := range []row{
		// Cluster API drops the pin, sees two different strings and runs a whole migration for it.
		{"a pin is kept with its tag", pinned, image.Want{Tag: "v1.11.1"}, pinned},
		{"a pin moves with its tag to a mirror", pinned, image.Want{Repository: "mirror.example", Tag: "v1.11.1"}, "mirror.example/coredns:v1.11.1@" + digest},
		{"a pin goes with its tag", pinned, image.Want{Tag: "v1.11.3"}, "repo.example/coredns:v1.11.3"},
		// Cluster API changes the repository even without a tag; here CoreDNS is touched only when its tag is asked for.
		{"4: no tag, nothing happens", "repo.example/coredns:v1.11.1", image.Want{}, "repo.example/coredns:v1.11.1"},
		{"a repository without a tag does nothing", "repo.example/coredns:v1.11.1", image.Want{Repository: "mirror.example", ClusterRepository: "c.example"}, "repo.example/coredns:v1.11.1"},
		{"an unreadable image without a wanted tag is left alone", "repo.example/coredns@" + digest, image.Want{}, "repo.example/coredns@" + digest},
	} {
		t.Run(r.name, func(t *testing.T) { t.Parallel(); r.run(t) })
	}
}

func TestTargetErrors(t *testing.T) {
	t.Parallel()
	isNoTag := func(err error) bool { return errors.Is(err, image.ErrNoTag) }
	isVersion := func(err error) bool { var e *skew.SyntaxError; return errors.As(err, &e) }
	isImage := func(err error) bool { var e *image.SyntaxError; return errors.As(err, &e) }
	for _, c := range []struct {
		name, live string
		want       image.Want
		is         func(error) bool
	}{
		{"no tag", "k8s.gcr.io/coredns", image.Want{Tag: "1.7.0"}, isNoTag},
		{"digest only", "k8s.gcr.io/coredns@" + digest, image.Want{Tag: "1.7.0"}, isNoTag},
		{"live tag is no version", "k8s.gcr.io/coredns:v1X6.2", image.Want{Tag: "1.7.0"}, isVersion},
		{"live tag is a word", "k8s.gcr.io/coredns:latest", image.Want{Tag: "1.7.0"}, isVersion},
		{"wanted tag is no version", "k8s.gcr.io/coredns:1.6.2", image.Want{Tag: "v1X6.2-foobar.1"}, isVersion},
		{"wanted tag with a plus sign", "k8s.gcr.io/coredns:1.6.2", image.Want{Tag: "v0.20.0+invalidBuild1"}, isVersion},
		{"wanted repository is none", "k8s.gcr.io/coredns:1.6.2", image.Want{Repository: "%%%", Tag: "1.7.0"}, isImage},
		{"wanted repository is a URL", "k8s.gcr.io/coredns:1.6.2", image.Want{Repository: "https://mirror.example", Tag: "1.7.0"}, isImage},
		{"wanted repository has a tag", "k8s.gcr.io/coredns:1.6.2", image.Want{Repository: "mirror.example/a:1", Tag: "1.7.0"}, isImage},
		{"wanted repository is a slash", "k8s.gcr.io/coredns:1.6.2", image.Want{Repository: "/", Tag: "1.7.0"}, isImage},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			live, err := image.Parse(c.live)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := image.Target(live, c.want); !c.is(err) {
				t.Errorf("%s with %+v: %s, %v", c.live, c.want, got, err)
			}
		})
	}
}
