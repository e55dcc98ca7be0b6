// Verifies what quotad sent, by the library of Standard Webhooks for JavaScript. It reads
// {"secret","headers","body"} and prints the event's type, or why it is not signed.
const { Webhook } = require('standardwebhooks')
const { secret, headers, body } = JSON.parse(require('fs').readFileSync(0, 'utf8'))
try {
  console.log(new Webhook(secret).verify(body, headers).type)
} catch (e) {
  console.log('refused: ' + e.message)
}
