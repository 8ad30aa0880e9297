/** The page /data. */
import type { FastifyInstance } from 'fastify'
import type { DataPicturesReader } from '../ports.ts'
import { readExamples } from './examples.ts'
import { dataContent, examplesSection } from './page.ts'

export interface DataPageDependencies {
  pictures: DataPicturesReader
  options: { sqlUrl?: string | undefined; viewsDatabase: string }
}

/** Adds the page. The examples are read once. */
export function registerDataPage(app: FastifyInstance, { pictures, options }: DataPageDependencies): void {
  const examples = examplesSection(readExamples(options.viewsDatabase), options.sqlUrl)
  app.get('/data', async (_request, reply) =>
    reply.page({
      title: 'For data teams',
      description: 'Pictures of the platform, and questions on it as SQL that you can run.',
      path: '/data',
      content: dataContent({ pictures: await pictures.read(), examples }),
    }),
  )
}
