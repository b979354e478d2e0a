// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/theseus-gitops/theseus/executors/kube"
	"github.com/theseus-gitops/theseus/reconcile/logbook"
	"github.com/theseus-gitops/theseus/reconcile/rollout"
)

func roll(id string) *logbook.Roll {
	return &logbook.Roll{ID: id, Started: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Revision: "4f1c"}
}

func TestBookIsWrittenAndReadBack(t *testing.T) {
	client := admin(t)
	first, err := client.WriteBook(t.Context(), "", logbook.Book{Roll: roll("one")})
	if err != nil {
		t.Fatal(err)
	}
	maps := client.Interface().CoreV1().ConfigMaps("kube-system")
	patch := []byte(`{"metadata":{"labels":{"team":"a"}},"data":{"note":"ours"}}`)
	touched, err := maps.Patch(t.Context(), "theseus", "application/merge-patch+json", patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.WriteBook(t.Context(), first, logbook.Book{Roll: roll("lost")}); !errors.Is(err, rollout.ErrConflict) {
		t.Fatalf("a write on an old version: got %v, want ErrConflict", err)
	}
	second, err := client.WriteBook(t.Context(), touched.ResourceVersion, logbook.Book{Roll: roll("two"), Fence: 3})
	if err != nil {
		t.Fatal(err)
	}

	have, err := client.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if have.Book.Roll == nil || have.Book.Roll.ID != "two" || have.Book.Fence != 3 || have.BookVersion != second {
		t.Errorf("read back %+v at %s, want roll two, fence 3 at %s", have.Book, have.BookVersion, second)
	}
	m, err := maps.Get(t.Context(), "theseus", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Labels["app.kubernetes.io/managed-by"] != "theseus" || m.Labels["team"] != "a" || m.Data["note"] != "ours" {
		t.Errorf("labels %v, note %q: ours are missing or others' are gone", m.Labels, m.Data["note"])
	}
}

func TestBookRaces(t *testing.T) {
	client := admin(t)
	wins := race(t, func(i int) error {
		_, err := client.WriteBook(t.Context(), "", logbook.Book{Roll: roll(fmt.Sprint(i))})
		return err
	})
	if wins != 1 {
		t.Errorf("%d of 8 made the logbook, want 1", wins)
	}
	have, err := client.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wins = race(t, func(i int) error {
		_, err := client.WriteBook(t.Context(), have.BookVersion, logbook.Book{Roll: roll(fmt.Sprint("again", i))})
		return err
	})
	if wins != 1 {
		t.Errorf("%d of 8 wrote on the same version, want 1", wins)
	}
	if err := client.Interface().CoreV1().ConfigMaps("kube-system").Delete(t.Context(), "theseus", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.WriteBook(t.Context(), have.BookVersion, logbook.Book{}); !errors.Is(err, rollout.ErrConflict) {
		t.Errorf("a write to a deleted logbook: got %v, want ErrConflict", err)
	}
}

// race runs one write eight times at once and counts who won; the others must see a conflict.
func race(t *testing.T, write func(int) error) int {
	t.Helper()
	errs := make([]error, 8)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { errs[i] = write(i) })
	}
	group.Wait()
	wins := 0
	for _, err := range errs {
		switch {
		case err == nil:
			wins++
		case !errors.Is(err, rollout.ErrConflict):
			t.Errorf("got %v, want ErrConflict", err)
		}
	}
	return wins
}

func TestDamagedBookStopsEverything(t *testing.T) {
	for name, c := range map[string]struct {
		data           map[string]string
		cause, remedy  string
		neverSuggested string
	}{
		"no key":        {map[string]string{"other": "x"}, "key logbook.json is missing", "delete configmap theseus", ""},
		"no JSON":       {map[string]string{"logbook.json": "{"}, "unexpected end", "delete configmap theseus", ""},
		"no version":    {map[string]string{"logbook.json": "{}"}, "version 0", "backup", ""},
		"half a roll":   {map[string]string{"logbook.json": `{"version": 1, "roll": {}}`}, "roll lacks id, started, revision", "backup", ""},
		"newer version": {map[string]string{"logbook.json": `{"version": 2}`}, "version 2", "run the release of Theseus that wrote it", "delete"},
	} {
		t.Run(name, func(t *testing.T) {
			client := admin(t)
			m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "theseus"}, Data: c.data}
			if _, err := client.Interface().CoreV1().ConfigMaps("kube-system").Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			_, err := client.Observe(t.Context())
			var damaged *kube.DamagedError
			if !errors.As(err, &damaged) {
				t.Fatalf("got %v, want a DamagedError", err)
			}
			text := err.Error()
			for _, want := range []string{"configmap/theseus", c.cause, c.remedy} {
				if !strings.Contains(text, want) {
					t.Errorf("got %s\nwant %s in it", text, want)
				}
			}
			if c.neverSuggested != "" && strings.Contains(text, c.neverSuggested) {
				t.Errorf("got %s\nwant no advice to %s", text, c.neverSuggested)
			}
		})
	}
}
