/** The work was refused: too much work is waiting, or it has waited too long. */
export class OverloadedError extends Error {
  override name = 'OverloadedError'
}
