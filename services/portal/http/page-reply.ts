/** `reply.page`: sends a page in the portal's frame, with what the frame says of the person who is signed in. */
import type { FastifyInstance, FastifyReply } from 'fastify'
import { type PageOptions, page } from '../html/layout.ts'

/** A page, without what the frame gets from the session. */
export type PageContent = Omit<PageOptions, 'signedInAs' | 'csrf'>

declare module 'fastify' {
  interface FastifyReply {
    /** Sends the page. `path` marks its entry of the navigation. */
    page(content: PageContent): FastifyReply
  }
}

/** Decorates the app's replies. */
export function addPageReply(app: FastifyInstance): void {
  app.decorateReply('page', function reply(this: FastifyReply, content: PageContent) {
    const { request } = this
    const account = request.account
    // Not `no-cache` for people: what their pages show must not stay behind the back button after signing out. The CSRF token,
    // which every page of theirs has, sets `no-store`.
    if (!this.hasHeader('cache-control')) this.header('cache-control', 'no-cache')
    const signedIn = account && { signedInAs: account.email, csrf: request.csrfToken() }
    return this.type('text/html; charset=utf-8').send(
      page({
        ...content,
        ...signedIn,
      }),
    )
  })
}
