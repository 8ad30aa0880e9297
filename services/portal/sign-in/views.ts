/** The pages of signing in, as functions of what they show. Pure. */
import { type Html, html } from '../html/html.ts'

export interface SignInView {
  csrf: Html
  next: string | undefined
  /** What the person typed, if it was wrong. */
  email?: string
  fault?: string | undefined
  hasMail: boolean
  hasProvider: boolean
}

/** The first page: an address, or the provider. */
export function signInView({ csrf, next, email = '', fault, hasMail, hasProvider }: SignInView): Html {
  const query = next === undefined ? '' : `?next=${encodeURIComponent(next)}`
  return html`<h1>Sign in</h1>
${
  hasMail || hasProvider
    ? html`<p>There is no password. If you have no account yet, signing in creates a free one.</p>`
    : html`<p>Signing in is not set up here yet. Ask the operator of this service for a key.</p>`
}
${hasProvider && html`<p><a href="/sign-in/provider${query}" role="button">Sign in with your platform account</a></p>`}
${
  hasMail &&
  html`<form class="stacked" method="post" action="/sign-in">
${csrf}
${next !== undefined && html`<input type="hidden" name="next" value="${next}">`}
<label for="email">E-mail address</label>
<input type="email" id="email" name="email" value="${email}" autocomplete="email" required maxlength="254"${fault !== undefined && html` aria-invalid="true" aria-describedby="email-fault"`}>
${fault !== undefined && html`<small id="email-fault">${fault}</small>`}
<button type="submit">Send me a code and a link</button>
</form>`
}`
}

export interface CodeView {
  csrf: Html
  fault?: string | undefined
}

/** Asks for the mailed code. It says the same for every address. */
export function codeView({ csrf, fault }: CodeView): Html {
  return html`<h1>Look into your mail</h1>
<p>We sent a code and a link to the address that you entered. Both work once, within 15 minutes.</p>
<form class="stacked" method="post" action="/sign-in/code">
${csrf}
<label for="code">Code</label>
<input type="text" id="code" name="code" inputmode="numeric" autocomplete="one-time-code" required maxlength="20" placeholder="1234 5678"${fault !== undefined && html` aria-invalid="true" aria-describedby="code-fault"`}>
${fault !== undefined && html`<small id="code-fault">${fault}</small>`}
<button type="submit">Sign in</button>
</form>
<p>No mail? Look among the unwanted mails. An address gets a few mails an hour at most. <a href="/sign-in">Enter the address again</a></p>`
}

/** Where the link of a mail leads. Only the button uses the link up. */
export function linkView({ csrf, email, link }: { csrf: Html; email: string; link: string }): Html {
  return html`<h1>Sign in</h1>
<p>Sign in to Pledgeview in this browser as <strong>${email}</strong>?</p>
<form method="post" action="/sign-in/link">
${csrf}
<input type="hidden" name="token" value="${link}">
<button type="submit">Sign in</button>
</form>`
}

/** A link or a code that is no good any more. */
export function overView(what: 'link' | 'code'): Html {
  return html`<h1>This ${what} is over</h1>
<p>It was used already, it is older than 15 minutes, or it was tried too often.${what === 'code' && html` The link in the same mail may still work.`}</p>
<p><a href="/sign-in" role="button">Ask for a new one</a></p>`
}
