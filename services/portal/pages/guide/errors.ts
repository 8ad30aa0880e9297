/** The guide: what to do for each error. Pure. */
import { type ErrorCode, errorBody, errorCodes, errors } from '../../../../contracts/api/errors.ts'
import { type Html, html } from '../../html/html.ts'
import { codeBlock } from '../../html/parts.ts'
import { prose } from '../../html/prose.ts'

/** A new code does not compile without its advice. */
const advice: Record<ErrorCode, string> = {
  invalid_parameter: 'Correct the parameter that the message names. To send it again does not help.',
  malformed_request: 'Encode the path and the headers correctly. To send it again does not help.',
  unauthorized:
    'Check key and secret. The answer is the same if one is missing, unknown, wrong or revoked. API access shows whether your key is active.',
  forbidden: 'The key may not read. Create another key.',
  not_found: 'There is no such public campaign, or no such path. The slug of a campaign may have changed.',
  method_not_allowed: 'Use `GET`. The API only reads.',
  request_timeout: 'Send the whole request at once, and try again.',
  headers_too_large: 'Send fewer or shorter headers.',
  rate_limited: 'Wait as many seconds as `Retry-After` says, then go on. Poll once a minute at most.',
  internal_error: 'Wait as many seconds as `Retry-After` says, then try again with growing pauses.',
}

export function errorsSection(): Html {
  const codes = [...errorCodes].sort((one, other) => errors[one].status - errors[other].status)
  return html`<h2 id="errors">Errors</h2>
<p>Every answer with a status of 400 or more has this shape. Use <code>code</code> in your program. The message is for people, and its words may change.</p>
${codeBlock({ id: 'error-body', caption: 'The body of an error', text: JSON.stringify(errorBody('rate_limited'), null, 2) })}
<table class="stack"><thead><tr><th scope="col">Status and code</th><th scope="col">What to do</th></tr></thead><tbody>
${codes.map(code => html`<tr id="error-${code}"><th scope="row">${errors[code].status} <code>${code}</code></th><td>${prose(advice[code])}</td></tr>`)}
</tbody></table>
<p>If no answer comes at all, the network failed or the address is wrong: try again with growing pauses. Only 408, 429 and 500 are worth a second try.</p>`
}
