// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// FileKind tells what stands at a path of the repository's tree.
type FileKind int

const (
	// Regular is a file with Data.
	Regular FileKind = iota
	// Symlink is refused by name: what it points to is not pinned by the commit, or lies outside the spec path.
	Symlink
	// Submodule is refused by name: its content is in another repository.
	Submodule
	// TooLarge is a YAML file that was left unread because it is larger than MaxFileBytes.
	TooLarge
)

// File is one file below the spec path.
type File struct {
	Path string // relative to the spec path, with slashes
	Data []byte
	Kind FileKind
}

// Repository is what could be read. Clusters and releases with errors are not in it; Problems names them.
type Repository struct {
	// Fleet is nil when fleet.yaml is missing or has errors. No cluster can be resolved then, because images are unknown, and
	// none may start a change, because the gates are.
	Fleet *Fleet
	// Status is the fleet's status target, and the default one when the fleet could not be read.
	Status StatusTarget
	// Releases and Clusters are sorted by name.
	Releases []Release
	Clusters []Cluster
	// OtherFiles counts YAML files without any document of ours; they are ignored.
	OtherFiles int
}

// Parse reads all files below the spec path and returns the good documents together with all problems. Files that are no
// YAML are passed over; gitsource may leave them out, but must give symlinks and submodules whatever their name.
func Parse(files []File) (Repository, Problems) {
	p := &parser{}
	if len(files) > MaxFiles {
		p.report(".", "found %d files below the spec path; allowed: %d: choose a smaller --path", len(files), MaxFiles)
		return Repository{Status: defaultStatus()}, p.found
	}
	files = slices.SortedFunc(slices.Values(files), func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	for _, f := range files {
		p.file(f)
	}
	if !p.fleetSeen {
		p.found = append(p.found, Problem{
			File: FleetFile, Line: 1, Column: 1, Severity: Error, Kind: KindFleet,
			Message: "the file is missing at the top of the spec path; without it stages, windows and a freeze would be off unseen: " +
				"add it, at least with apiVersion: " + APIVersion + ", kind: Fleet and spec: {}",
		})
	}
	p.validate()
	return p.repository(), p.found.sorted()
}

// parsed is a document with the value read from it.
type parsed[T any] struct {
	*document
	value T
}

type parser struct {
	found      Problems
	fleetSeen  bool
	fleets     []*parsed[Fleet]
	releases   []*parsed[Release]
	clusters   []*parsed[Cluster]
	otherFiles int
}

// report adds an error of a file as a whole.
func (p *parser) report(file, message string, args ...any) {
	problem := Problem{File: file, Line: 1, Column: 1, Severity: Error, Message: fmt.Sprintf(message, args...)}
	if file == FleetFile {
		problem.Kind = KindFleet
	}
	p.found = append(p.found, problem)
}

func (p *parser) file(f File) {
	if f.Path == FleetFile {
		p.fleetSeen = true
	}
	switch f.Kind {
	case Symlink:
		p.report(f.Path, "found a symbolic link; allowed below the spec path: files and folders. Put the file itself here, or choose another --path")
		return
	case Submodule:
		p.report(f.Path, "found a submodule; allowed below the spec path: files and folders of this repository. Choose another --path")
		return
	case Regular, TooLarge:
	}
	extension := path.Ext(f.Path)
	if (extension != ".yaml" && extension != ".yml") || path.Base(f.Path) == PlanFile {
		return
	}
	if f.Kind == TooLarge || len(f.Data) > MaxFileBytes {
		p.report(f.Path, "found a YAML file larger than 1 MiB; split it, or move it out of the spec path")
		return
	}
	if !p.documents(f) {
		p.otherFiles++
	}
}

// documents reads the documents of a file and tells whether any was meant for us.
func (p *parser) documents(f File) bool {
	data := bytes.TrimPrefix(f.Data, []byte("\xef\xbb\xbf"))
	fleet := f.Path == FleetFile
	if at, wrong := checkText(data); wrong != "" {
		if fleet || looksOurs(data) {
			d := p.unread(f.Path, data)
			d.add(at, Error, wrong)
			return true
		}
		return false
	}
	ours := fleet
	var empty []Position
	chunks := splitDocuments(data)
	for _, c := range chunks {
		is, isEmpty := p.document(f.Path, c)
		ours = ours || is
		if isEmpty {
			empty = append(empty, Position{c.before + 1, 1})
		}
	}
	for _, at := range empty {
		if ours {
			p.found = append(p.found, Problem{
				File: f.Path, Line: at.Line, Column: at.Column, Severity: Warning,
				Message: "found an empty document; remove its --- line",
			})
		}
	}
	if fleet && len(chunks) == len(empty) {
		p.report(f.Path, "the file is empty; allowed: a document with apiVersion: %s, kind: Fleet and spec", APIVersion)
	}
	return ours
}

// unread is the document of text that could not be read as YAML.
func (p *parser) unread(file string, text []byte) *document {
	d := &document{file: file, found: &p.found, places: map[string]span{}}
	d.kind, d.cluster = guessIdentity(text)
	if file == FleetFile && d.kind == "" {
		d.kind = KindFleet
	}
	return d
}

// document reads one document and tells whether it is ours, and whether it is empty.
func (p *parser) document(file string, c chunk) (ours, empty bool) {
	var root yaml.Node
	if err := yaml.Unmarshal(c.text, &root); err != nil {
		if file != FleetFile && !looksOurs(c.text) {
			return false, false
		}
		d := p.unread(file, c.text)
		d.before = c.before
		at, message := syntaxProblem(c, err)
		d.add(at, Error, message)
		return true, false
	}
	if len(root.Content) == 0 || (root.Content[0].ShortTag() == "!!null" && root.Content[0].Value == "") {
		return false, true
	}
	d := &document{file: file, before: c.before, root: root.Content[0], places: map[string]span{}, found: &p.found}
	d.identify()
	ours, readable := classify(d)
	if readable {
		p.read(d)
	}
	return ours, false
}

// read decodes a document of ours by its kind.
func (p *parser) read(d *document) {
	version, kind := child(d.root, "apiVersion"), child(d.root, "kind")
	if version.Value != APIVersion {
		d.add(d.at(version), Error, fmt.Sprintf("apiVersion: found %q; allowed: %s", shorten(version.Value), APIVersion))
		return
	}
	switch d.kind {
	case KindFleet:
		if fleet := decoded[Fleet](d); d.file == FleetFile {
			p.fleets = append(p.fleets, fleet)
		} else {
			d.add(d.at(kind), Error, fmt.Sprintf("kind: found a Fleet in %s; allowed: only in %s at the top of the spec path", d.file, FleetFile))
		}
	case KindRelease:
		p.releases = append(p.releases, decoded[Release](d))
	case KindCluster:
		p.clusters = append(p.clusters, decoded[Cluster](d))
	case kindClusterStatus:
	default:
		kinds := []string{KindFleet, KindRelease, KindCluster}
		if kind == nil {
			d.add(d.at(d.root), Error, "kind is missing; allowed: "+strings.Join(kinds, ", "))
			return
		}
		d.add(d.at(kind), Error, fmt.Sprintf("kind: found %s%s; allowed: %s", describe(kind), didYouMean(d.kind, kinds), strings.Join(kinds, ", ")))
	}
}

func decoded[T any](d *document) *parsed[T] {
	doc := &parsed[T]{document: d}
	d.decode(&doc.value)
	return doc
}

func (p *parser) repository() Repository {
	repo := Repository{Status: defaultStatus(), OtherFiles: p.otherFiles}
	if fleet := p.fleet(); fleet != nil {
		repo.Fleet = &fleet.value
	}
	// A fleet with errors elsewhere still tells where to report them.
	if len(p.fleets) > 0 && !p.fleets[0].failedBelow("spec.status") && p.fleets[0].has("spec") {
		repo.Status = cmp.Or(p.fleets[0].value.Spec.Status, repo.Status)
	}
	repo.Releases = good(p.releases, func(r Release) string { return r.Metadata.Name })
	repo.Clusters = good(p.clusters, func(c Cluster) string { return c.Metadata.Name })
	// A document that can't be read may claim a good one's name; which of them is meant can't be known.
	broken := p.found.BrokenClusters()
	repo.Clusters = slices.DeleteFunc(repo.Clusters, func(c Cluster) bool {
		_, found := slices.BinarySearch(broken, c.Metadata.Name)
		return found
	})
	return repo
}

// good returns the values of documents without errors, sorted by name.
func good[T any](docs []*parsed[T], name func(T) string) []T {
	var values []T
	for _, doc := range docs {
		if !doc.failed {
			values = append(values, doc.value)
		}
	}
	slices.SortFunc(values, func(a, b T) int { return cmp.Compare(name(a), name(b)) })
	return values
}
