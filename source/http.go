package source

import (
	"fmt"

	"github.com/hookfold/hookfold/event"
)

// httpPreset is the preset for anything that has no preset of its own: the
// config says how a request is verified and what its events are.
func httpPreset() *Preset {
	return &Preset{
		Name: "http",
		Doc: `Anything else: the config says how.

verify: hmac (sha256, sha1 or sha512, with header, encoding hex or base64, prefix, signed, timestamp_header, id_header), basic (with its user name; the secret is the password), bearer, header (the secret itself in a header), or none. signed is what the signature is over, a text with {body}, {timestamp} and {id}; by default {body}. With a timestamp the tolerance is 300 s, both ways.
event: an element of split, or the whole body, a list too: split: body makes an event of each of its elements. envelope: the body. id, type, time: as the config says, else none.
handshake: as the config says, else none. A GET is answered without a signature, a POST only with one.
format: json (default) or form. A form is an object: a field's text, or the list of its texts where it stands more than once. Brackets nest: a[b]=1 is {"a":{"b":"1"}}, a[]=1 and a[0]=1 are {"a":["1"]}. JSON in a field is text, which json(event.payload) reads. A body with Content-Encoding: gzip is unpacked for this; its signature is over the bytes received.`,
		New: func(o Options) (Source, error) {
			switch o.Format {
			case "", FormatJSON, FormatForm:
			default:
				return nil, fmt.Errorf("format: %q is not known: it is json or form", o.Format)
			}
			v, err := newScheme(o)
			return build(v, err, built{options: o, split: splitWhole, handshake: o.Handshake, signedHandshake: true})
		},
	}
}

func splitWhole(_ *event.Delivery, body event.JSON) ([]*event.Event, error) {
	return []*event.Event{whole(body)}, nil
}
