// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"
	"slices"

	"github.com/theseus-gitops/theseus/reconcile/live"
)

// mountedKey is the key that the pods read as their Corefile, "" when that can't be told.
func (d *dns) mountedKey() string {
	if d.deploy.Volume == nil {
		return ""
	}
	return d.deploy.Volume.Key()
}

// plainItems are the volume's items with the Corefile itself mounted, whatever is mounted now.
func (d *dns) plainItems() []live.VolumeItem {
	if d.deploy.Volume == nil || d.deploy.Volume.Items == nil {
		return nil
	}
	return swapKey(d.deploy.Volume.Items, live.CorefileBackupKey, live.CorefileKey)
}

// backupItems are the volume's items with the backup in the Corefile's place. A volume without items shows
// every key, so they are all named: an imported file must not vanish from the pods.
func (d *dns) backupItems() []live.VolumeItem {
	if d.deploy.Volume.Items != nil {
		return swapKey(d.deploy.Volume.Items, live.CorefileKey, live.CorefileBackupKey)
	}
	items := []live.VolumeItem{{Key: live.CorefileBackupKey, Path: live.CorefileKey}}
	keys := append(slices.Collect(maps.Keys(d.config.Data)), d.config.BinaryKeys...)
	slices.Sort(keys)
	for _, key := range keys {
		if key != live.CorefileKey && key != live.CorefileBackupKey {
			items = append(items, live.VolumeItem{Key: key, Path: key})
		}
	}
	return items
}

func swapKey(items []live.VolumeItem, from, to string) []live.VolumeItem {
	out := slices.Clone(items)
	for i := range out {
		if out[i].Key == from {
			out[i].Key = to
		}
	}
	return out
}
