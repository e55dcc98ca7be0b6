package admin

import (
	"net/http"
	"time"

	"quotad/client"
	"quotad/internal/web/page"
	"quotad/internal/web/parts"
)

func (v *visit) keys() (*page.View, error) { return v.keysPage(keyForm()) }

func keyForm() *form {
	return &form{Name: "key", Title: "New key", Action: "/admin/keys", Button: "Make the key", Class: "primary", Fields: []field{
		{Name: "name", Label: "Name", Kind: kindText, Help: "Who or what uses it."},
		{Name: "scope", Label: "Scope", Kind: kindSelect, Value: "backend", Options: []option{
			{"backend", "backend: charges hits, reads quotas"},
			{"read", "read: reads customers, plans and meters"},
			{"support", "support: reads, overrides, portal links"},
			{"admin", "admin: everything"},
		}},
		instantField("expires_at", "Valid until", time.UTC),
	}}
}

func (v *visit) keysPage(f *form) (*page.View, error) {
	list, err := v.API.Keys(v.Ctx(), v.Query())
	if err != nil {
		return nil, err
	}
	t := &table{Caption: "Keys", Head: heads("Name", "Scope", "Made", "Last use", "Valid until", ""), Empty: "There is no key", Next: v.Next(list.NextCursor)}
	for i := range list.Items {
		k := &list.Items[i]
		used := "–"
		if k.UsedOn != nil {
			used = *k.UsedOn
		}
		revoke := &form{
			Name: "revoke", Action: "/admin/keys/" + page.Segment(k.ID) + "/revoke", Button: "Revoke", Class: "danger",
			Ask: "No node takes the key “" + k.Name + "” any more, and what was signed in with it ends. This cannot be undone.", Sure: "Yes, revoke it",
		}
		name := cell{Text: k.Name, Sub: k.ID}
		if k.ID == v.As.KeyID {
			name.Chip = &parts.Chip{Class: "accent", Text: "you are signed in with it"}
			revoke.Ask = "You are signed in with this key: revoking it signs you out. " + revoke.Ask
		}
		t.Rows = append(t.Rows, []cell{name, marked("", k.Scope), v.instant(&k.CreatedAt), text(used), v.instant(k.ExpiresAt), {Form: revoke}})
	}
	sheet := &staffPage{
		Intro: "A revoked key is refused on every node within a second, and its sessions end.", Done: v.doneHere(),
		Sections: []section{{Table: t, Forms: []*form{f}}},
	}
	return sheet.shownAs("Keys", "keys"), nil
}

// makeKey creates a key and shows its secret directly in the response. The secret is not stored, so no page
// after a redirect could show it.
func (v *visit) makeKey() (*page.View, error) {
	f := keyForm()
	var made client.NewKey
	status, err := v.send(post{form: f, method: http.MethodPost, path: at("/v1/keys"), answer: &made})
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		shown, err := v.keysPage(f)
		if shown != nil {
			shown.Status = status
		}
		return shown, err
	}
	shown, err := v.keysPage(keyForm())
	if err != nil {
		return nil, err
	}
	shown.Data.(*staffPage).Secret = &secret{ //nolint:forcetypeassert // keysPage made it
		"The key " + made.Name, made.Secret, "It is shown this once. Only its hash is stored.",
	}
	return shown, nil
}

// press runs the action of a button without fields and redirects.
func (v *visit) press(do func() error, to string) (*page.View, error) {
	return &page.View{To: to}, do()
}

func (v *visit) revokeKey() (*page.View, error) {
	return v.press(func() error { return v.API.RevokeKey(v.Ctx(), v.R.PathValue("id")) }, "/admin/keys?done=revoked")
}
