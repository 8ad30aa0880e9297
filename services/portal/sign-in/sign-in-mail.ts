/** The mail with a sign-in link and a code. Pure. */
import type { Mail } from '../ports.ts'

export interface SignInMail {
  email: string
  /** Names the attempt in the Message-ID. It is not the browser's id. */
  mailId: string
  code: string
  link: string
  portalUrl: string
}

/** The code has eight digits, in two groups of four. The link leads to a page with a button: only the button signs the person in. */
export function signInMail({ email, mailId, code, link, portalUrl }: SignInMail): Mail {
  const { host } = new URL(portalUrl)
  return {
    id: `sign-in-${mailId}`,
    to: email,
    subject: `Sign in to Pledgeview (${host})`,
    text: `Someone asked to sign in to Pledgeview at ${host} with this address.

Enter this code in the window where you asked:

    ${code.slice(0, 4)} ${code.slice(4)}

Or open this link, and press the button there:

    ${portalUrl}/sign-in/link?token=${link}

Both work once, within 15 minutes. If it was not you, do nothing: without this mail there is no sign-in. Do not give the code to anyone.
`,
  }
}
