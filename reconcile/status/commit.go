// SPDX-License-Identifier: Apache-2.0

package status

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Commit is what one run has to say on the status branch.
type Commit struct {
	// Path is the folder on the branch ("status"), "" for its root.
	Path string
	// Stages are the fleet's stages in order, which is the page's order.
	Stages []string
	// Clusters are the names of all clusters in the specs, also of those that this run leaves alone. The file of a cluster
	// that is not among them is removed; its history stays in Git. Nil removes nothing: for a run that could not read all specs.
	Clusters []string
	Reports  []Report
	Now      time.Time
}

// Files is the commit's content from what is on the branch now: new file contents by path, nil for a file to remove, and
// nothing for what stays as it is. It can be run again on another tree, after a lost race. Files that are not Theseus's stay.
func (c Commit) Files(present Tree) (map[string][]byte, error) {
	next := map[string]Found{}
	changed := map[string][]byte{}
	for _, f := range Documents(present, c.Path, c.knows) {
		if c.Clusters != nil && !c.knows(f.Cluster) {
			changed[c.file(f.Cluster)] = nil
			continue
		}
		next[f.Cluster] = f
	}
	for _, r := range c.Reports {
		name := line(r.Cluster)
		if name == "" {
			return nil, errors.New("status: a report without the name of its cluster")
		}
		before := next[name]
		if before.Damage != "" {
			r.Notices = append([]string{lostPrefix + " and was written anew; its history is in Git only (" + before.Damage + ")."}, r.Notices...)
		}
		doc := Update(before.Document, r, c.Now)
		data, err := Format(doc)
		if err != nil {
			return nil, err
		}
		next[name] = Found{Cluster: name, Document: &doc}
		if file := c.file(name); !bytes.Equal(data, present.Files[file]) {
			changed[file] = data
		}
	}
	page := []byte(c.page(next))
	if file := path.Join(c.Path, "README.md"); !bytes.Equal(page, present.Files[file]) {
		changed[file] = page
	}
	return changed, nil
}

// Changed are the reports whose cluster's file is among those that Files returned: the ones that the commit is about.
func (c Commit) Changed(files map[string][]byte) []Report {
	var out []Report
	for _, r := range c.Reports {
		if files[c.file(line(r.Cluster))] != nil {
			out = append(out, r)
		}
	}
	return out
}

func (c Commit) knows(name string) bool {
	return slices.Contains(c.Clusters, name) ||
		slices.ContainsFunc(c.Reports, func(r Report) bool { return line(r.Cluster) == name })
}

// file is where a cluster's document is.
func (c Commit) file(cluster string) string {
	return path.Join(c.Path, "clusters", escapeName(cluster)+".yaml")
}

// escapeName makes one path element of any name, a different one for each. Names of valid specs stay as they are.
func escapeName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; isPlain(c) && (c != '.' || i > 0) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// unescapeName undoes escapeName. Of a text that is not of its making it makes something else: see whether escapeName agrees.
func unescapeName(file string) string {
	var b strings.Builder
	for i := 0; i < len(file); i++ {
		var c byte
		if file[i] != '%' {
			b.WriteByte(file[i])
		} else if n, err := fmt.Sscanf(file[i:min(i+3, len(file))], "%%%02X", &c); n == 1 && err == nil {
			b.WriteByte(c)
			i += 2
		}
	}
	return b.String()
}

func isPlain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_.", c) >= 0
}
