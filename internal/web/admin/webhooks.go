package admin

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"quotad/client"
	"quotad/internal/web/page"
	"quotad/internal/web/parts"
	"quotad/internal/web/words"
)

const webhooksURL = "/admin/webhooks"

func webhookForm() *form {
	return &form{Name: "webhook", Title: "New webhook", Action: webhooksURL, Button: "Make the webhook", Class: "primary", Fields: []field{
		{Name: "url", Label: "URL", Kind: kindText, Help: "Where events are sent, such as https://example.com/quotad."},
		{Name: "types", Label: "Types of events", Kind: kindLines, Optional: true, Help: "One a line, such as invoice.finalized. All without one."},
	}}
}

// webhookState returns the mark for whether events are sent to a webhook.
func webhookState(w *client.Webhook) (class, text string) {
	switch {
	case w.DisabledAt != nil && *w.DisabledFor == "gone":
		return "bad", "disabled: it answered 410"
	case w.DisabledAt != nil:
		return "bad", "disabled: nothing was delivered for 5 days"
	case w.FailingSince != nil:
		return "high", "failing"
	}
	return "good", "on"
}

func typesText(w *client.Webhook) string {
	if len(w.Types) == 0 {
		return "all events"
	}
	return strings.Join(w.Types, ", ")
}

func (v *visit) webhooks() (*page.View, error) { return v.webhooksPage(webhookForm()) }

func (v *visit) webhooksPage(f *form) (*page.View, error) {
	list, err := v.API.Webhooks(v.Ctx(), v.Query())
	if err != nil {
		return nil, err
	}
	t := &table{Caption: "Webhooks", Head: heads("URL", "Events", "State", "Made"), Empty: "There is no webhook", Next: v.Next(list.NextCursor)}
	for i := range list.Items {
		w := &list.Items[i]
		to := linked(w.URL, webhooksURL+"/"+page.Segment(w.ID))
		to.Sub = w.ID
		t.Rows = append(t.Rows, []cell{to, text(typesText(w)), marked(webhookState(w)), v.instant(&w.CreatedAt)})
	}
	sheet := &staffPage{
		Intro: "Events are sent to these URLs, signed, as they happen.", Done: v.doneHere(),
		Sections: []section{{Table: t, Forms: []*form{f}}},
	}
	return sheet.shownAs("Webhooks", "webhooks"), nil
}

// webhookSecret returns a secret for the response that created it, because no later page can show the secret.
func webhookSecret(w *client.NewWebhook) *secret {
	return &secret{"The secret of " + w.URL, w.Secret, "It is shown this once. Receivers verify signatures by it."}
}

func (v *visit) makeWebhook() (*page.View, error) {
	f := webhookForm()
	var made client.NewWebhook
	status, err := v.send(post{form: f, method: http.MethodPost, path: at("/v1/webhooks"), answer: &made})
	if err != nil {
		return nil, err
	}
	if status == http.StatusOK {
		f = webhookForm()
	}
	shown, err := v.webhooksPage(f)
	if err != nil {
		return nil, err
	}
	if shown.Status = status; status == http.StatusOK {
		shown.Data.(*staffPage).Secret = webhookSecret(&made) //nolint:forcetypeassert // webhooksPage made it
	}
	return shown, nil
}

func (v *visit) webhookURL() string { return webhooksURL + "/" + page.Segment(v.R.PathValue("id")) }

// oneWebhook returns the webhook whose id is in the path. It searches the list of all webhooks, which fits on
// one page because there are at most 20.
func (v *visit) oneWebhook() (*client.Webhook, error) {
	list, err := v.API.Webhooks(v.Ctx(), url.Values{"limit": {"100"}})
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list.Items, func(w client.Webhook) bool { return w.ID == v.R.PathValue("id") })
	if at < 0 {
		return nil, &page.Message{
			Status: http.StatusNotFound, Title: "There is no such webhook", Text: "It may have been deleted.",
			Link: &page.Link{Text: "All webhooks", URL: webhooksURL},
		}
	}
	return &list.Items[at], nil
}

func (v *visit) webhook() (*page.View, error) { return v.webhookPage(nil) }

// webhookPage shows a webhook and its deliveries. back is the rejected form, or nil.
func (v *visit) webhookPage(back *form) (*page.View, error) {
	w, err := v.oneWebhook()
	if err != nil {
		return nil, err
	}
	list, err := v.API.Deliveries(v.Ctx(), w.ID, v.Query())
	if err != nil {
		return nil, err
	}
	t := &table{
		Caption: "Deliveries", Head: heads("Event", "State", "Attempts", "Last attempt", "Next attempt"), Empty: "Nothing was sent yet",
		Next: v.Next(list.NextCursor),
	}
	for i := range list.Items {
		t.Rows = append(t.Rows, v.deliveryRow(&list.Items[i]))
	}
	class, state := webhookState(w)
	facts := []parts.Fact{{Term: "Events", Text: typesText(w)}, {Term: "Made", Text: v.instant(&w.CreatedAt).Text}}
	for _, since := range []struct {
		term string
		at   *time.Time
	}{{"Failing since", w.FailingSince}, {"Disabled since", w.DisabledAt}, {"The secret of before signs until", w.OldUntil}} {
		if since.at != nil {
			facts = append(facts, parts.Fact{Term: since.term, Text: v.instant(since.at).Text})
		}
	}
	here := v.webhookURL()
	forms := []*form{v.replayForm()}
	actions := []*form{
		{Name: "test", Action: here + "/test", Button: "Send a test"},
		{
			Name: "rotate", Action: here + "/rotate", Button: "New secret",
			Ask: "A new secret is shown once. The one of now signs beside it for 24 hours; one from before signs no more.", Sure: "Yes, make a new one",
		},
		{
			Name: "delete", Action: here + "/delete", Button: "Delete", Class: "danger", Ask: "Nothing is sent to it any more. What waits is dropped.",
			Sure: "Yes, delete it",
		},
	}
	if back != nil && back.Name == "replay" {
		forms[0] = back
	} else {
		actions = with(actions, back)
	}
	sheet := &staffPage{
		Crumbs: []page.Link{{Text: "Webhooks", URL: webhooksURL}}, Chips: []parts.Chip{{Class: class, Text: state}}, Done: v.doneHere(), Actions: actions,
		Sections: []section{{Facts: facts}, {Title: "What was sent", Table: t, Forms: forms}},
	}
	return sheet.shownAs(w.URL, "webhooks"), nil
}

func (v *visit) deliveryRow(d *client.Delivery) []cell {
	event := cell{Text: d.Type, Sub: strconv.FormatInt(d.Event, 10)}
	state := marked(map[string]string{"delivered": "good", "dead": "bad", "waiting": ""}[d.State], d.State)
	switch {
	case d.Error != nil:
		state.Sub = *d.Error
	case d.Status != nil:
		state.Sub = "It answered " + strconv.Itoa(*d.Status) + "."
	}
	return []cell{event, state, text(words.Number(int64(d.Attempts))), v.instant(d.LastAt), v.instant(d.DueAt)}
}

func (v *visit) testWebhook() (*page.View, error) {
	is, err := v.API.TestWebhook(v.Ctx(), v.R.PathValue("id"))
	switch {
	case err != nil:
		return nil, err
	case is.Enabled:
		return &page.View{To: v.webhookURL() + "?done=enabled"}, nil
	case is.Delivered:
		return &page.View{To: v.webhookURL() + "?done=tested"}, nil
	}
	return v.webhookPage(&form{Name: "test", Action: v.webhookURL() + "/test", Button: "Send a test", Wrong: "The test was not taken: " + *is.Error})
}

func (v *visit) rotateWebhook() (*page.View, error) {
	made, err := v.API.RotateWebhook(v.Ctx(), v.R.PathValue("id"))
	if err != nil {
		return nil, err
	}
	shown, err := v.webhookPage(nil)
	if err != nil {
		return nil, err
	}
	shown.Data.(*staffPage).Secret = webhookSecret(&made) //nolint:forcetypeassert // webhookPage made it
	return shown, nil
}

func (v *visit) deleteWebhook() (*page.View, error) {
	return v.press(func() error { return v.API.DeleteWebhook(v.Ctx(), v.R.PathValue("id")) }, webhooksURL+"?done=deleted")
}

// replayForm returns the form for the time span whose events are sent again.
func (v *visit) replayForm() *form {
	from := instantField("from", "From", v.Zone)
	from.Optional = false
	return &form{
		Name: "replay", Title: "Send again", Action: v.webhookURL() + "/replay", Button: "Send them again",
		Note: "All events of its types in this time are sent, also those that were delivered. They keep their ids.", Fields: []field{
			from, instantField("to", "To", v.Zone),
		},
	}
}

func (v *visit) replayWebhook() (*page.View, error) {
	return v.sent(post{
		form: v.replayForm(), method: http.MethodPost, path: at("/v1/webhooks/" + page.Segment(v.R.PathValue("id")) + "/replay"),
		to: v.webhookURL() + "?done=replayed",
	}, v.webhookPage)
}
