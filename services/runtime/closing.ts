interface Closable {
  close(): unknown
}

/** Notes that a part has to be closed, and returns it. */
export type Open = <Part extends Closable | undefined>(part: Part) => Part

/** Runs the work, and then closes what it opened, the last one first, whether it succeeded or failed. */
export async function closing<Result>(work: (open: Open) => Promise<Result>): Promise<Result> {
  const parts: (Closable | undefined)[] = []
  try {
    return await work(part => {
      parts.push(part)
      return part
    })
  } finally {
    for (const part of parts.reverse()) await part?.close()
  }
}
