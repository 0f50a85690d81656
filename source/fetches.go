package source

import "time"

// Fetch is a ready fetch: how the current state of a thing is read from its
// provider's API, given an event about it. Texts are expressions of a config.
type Fetch struct {
	// Name is calendly/invitee; before the slash stands the provider.
	Name string
	// Doc tells in a line or two what is read, with the source of each fact.
	Doc string
	// URL gives the address, by the event.
	URL string
	// Hosts are the hosts of the API, as in a config.
	Hosts []string
	// Auth is how the provider's API knows who asks: AuthBearer, or the name of the
	// header that holds the token. A config has to give it.
	Auth string
	// Headers are sent with every request, EventHeaders where they are there.
	Headers, EventHeaders map[string]string
	// Version is the version in the answer; nil is when the read began.
	Version []string
	// Rate is what the provider allows at least, in requests per Per.
	Rate int
	Per  time.Duration
	// Sample is an answer, cut to what matters, for checks.
	Sample string
}

// AuthBearer is Authorization: Bearer.
const AuthBearer = "bearer"

// Fetches returns every ready fetch, by name.
func Fetches() []*Fetch {
	return []*Fetch{
		{
			Name:    "calendly/invitee",
			Doc:     "The invitee that the event is about, as `fetched.resource`. A no-show moves no `updated_at`: map what tells of it from the event. (developer.calendly.com: Get Event Invitee, Rate limits)",
			URL:     `event.payload.uri`,
			Hosts:   []string{"api.calendly.com"},
			Auth:    AuthBearer,
			Version: []string{"timestamp(fetched.resource.updated_at)"},
			Rate:    50, Per: time.Minute,
			Sample: `{"resource":{"uri":"https://api.calendly.com/scheduled_events/AAAA/invitees/BBBB","status":"active","rescheduled":false,"created_at":"2026-03-01T10:00:00.000000Z","updated_at":"2026-03-01T10:00:00.100000Z","old_invitee":null,"new_invitee":null}}`,
		},
		{
			Name:    "calendly/scheduled_event",
			Doc:     "The meeting of the invitee that the event is about, as `fetched.resource`. (developer.calendly.com: Get Event)",
			URL:     `event.payload.scheduled_event.uri`,
			Hosts:   []string{"api.calendly.com"},
			Auth:    AuthBearer,
			Version: []string{"timestamp(fetched.resource.updated_at)"},
			Rate:    50, Per: time.Minute,
			Sample: `{"resource":{"uri":"https://api.calendly.com/scheduled_events/AAAA","status":"active","start_time":"2026-03-02T10:00:00.000000Z","end_time":"2026-03-02T10:30:00.000000Z","created_at":"2026-03-01T10:00:00.000000Z","updated_at":"2026-03-01T10:00:00.100000Z"}}`,
		},
		{
			Name: "github/issue",
			Doc:  "The issue of the event, from a source of `preset: http`. (docs.github.com: REST API, Issues; Rate limits)",
			URL:  `event.issue.url`, Hosts: []string{"api.github.com"}, Auth: AuthBearer,
			Headers: map[string]string{"Accept": "application/vnd.github+json"},
			Version: []string{"timestamp(fetched.updated_at)"}, Rate: 5000, Per: time.Hour,
			Sample: `{"number":7,"state":"open","title":"It does not start","updated_at":"2026-03-01T10:00:00Z"}`,
		},
		{
			Name: "github/pull_request",
			Doc:  "The pull request of the event, from a source of `preset: http`. Checks and comments do not always move its `updated_at`. (docs.github.com: REST API, Pulls; Rate limits)",
			URL:  `event.pull_request.url`, Hosts: []string{"api.github.com"}, Auth: AuthBearer,
			Headers: map[string]string{"Accept": "application/vnd.github+json"},
			Version: []string{"timestamp(fetched.updated_at)"}, Rate: 5000, Per: time.Hour,
			Sample: `{"number":7,"state":"open","merged":false,"updated_at":"2026-03-01T10:00:00Z"}`,
		},
		{
			Name: "shopify/order",
			Doc:  "The order of the event, as `fetched.order`, from a source of `preset: http`; the shop is the one of the header X-Shopify-Shop-Domain. (shopify.dev: Admin REST API, Order; Rate limits)",
			URL:  `"https://" + headers["x-shopify-shop-domain"] + "/admin/api/2026-07/orders/" + string(event.id) + ".json"`, Hosts: []string{"*.myshopify.com"}, Auth: "X-Shopify-Access-Token",
			Version: []string{"timestamp(fetched.order.updated_at)"}, Rate: 2, Per: time.Second,
			Sample: `{"order":{"id":450789469,"financial_status":"paid","updated_at":"2026-03-01T06:00:00-04:00"}}`,
		},
		{
			Name: "shopify/product",
			Doc:  "The product of the event, as `fetched.product`, as the order is. (shopify.dev: Admin REST API, Product)",
			URL:  `"https://" + headers["x-shopify-shop-domain"] + "/admin/api/2026-07/products/" + string(event.id) + ".json"`, Hosts: []string{"*.myshopify.com"}, Auth: "X-Shopify-Access-Token",
			Version: []string{"timestamp(fetched.product.updated_at)"}, Rate: 2, Per: time.Second,
			Sample: `{"product":{"id":632910392,"title":"Cup","updated_at":"2026-03-01T06:00:00-04:00"}}`,
		},
		{
			Name: "stripe/object",
			Doc: "The object of the event, of the kinds " + "account, charge, checkout session, customer, invoice, payment intent, payment method, price, product, refund, subscription; for an event of a connected account with its Stripe-Account. " +
				"Stripe's objects bear no version: the version is when the read began. (docs.stripe.com: API reference, Webhooks, Rate limits)",
			URL: `"https://api.stripe.com/v1/" + {"account": "accounts", "charge": "charges", "checkout.session": "checkout/sessions", "customer": "customers", "invoice": "invoices", "payment_intent": "payment_intents", ` +
				`"payment_method": "payment_methods", "price": "prices", "product": "products", "refund": "refunds", "subscription": "subscriptions"}[event.data.object.object] + "/" + event.data.object.id`,
			Hosts: []string{"api.stripe.com"}, Auth: AuthBearer,
			EventHeaders: map[string]string{"Stripe-Account": "event.?account"},
			Rate:         25, Per: time.Second,
			Sample: `{"id":"sub_1","object":"subscription","status":"active"}`,
		},
	}
}

// FetchNamed returns the ready fetch of a name, or nil.
func FetchNamed(name string) *Fetch {
	for _, f := range Fetches() {
		if f.Name == name {
			return f
		}
	}
	return nil
}
