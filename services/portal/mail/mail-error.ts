/** A mail was not sent. The message can be logged: it has no address and no text of the mail. */
export class MailError extends Error {
  override name = 'MailError'
  /** The server takes no mail for this address. It makes no sense to try again. */
  readonly isRefusedAddress: boolean
  /** The server may have taken the mail: it did not answer. */
  readonly isInDoubt: boolean
  constructor(message: string, { isRefusedAddress = false, isInDoubt = false } = {}) {
    super(message)
    this.isRefusedAddress = isRefusedAddress
    this.isInDoubt = isInDoubt
  }
}
