/** The client's own types of the bodies, which are generated, are those of the schemas. */
import { expectTypeOf, it } from 'vitest'
import type * as client from '../../../contracts/api/client/bodies.ts'
import type * as schemas from '../../../contracts/api/schemas.ts'
import type { ProjectListBody } from '../../../services/query/endpoints/projects.ts'
import type { Stats } from '../../../services/query/endpoints/stats.ts'

// The type check decides this.
it('the types of the client equal those of the schemas', () => {
  expectTypeOf<client.Project>().toEqualTypeOf<schemas.Project>()
  expectTypeOf<client.ProjectDetail>().toEqualTypeOf<schemas.ProjectDetail>()
  expectTypeOf<client.ProjectListBody>().toEqualTypeOf<ProjectListBody>()
  expectTypeOf<client.Reward>().toEqualTypeOf<schemas.Reward>()
  expectTypeOf<client.Stats>().toEqualTypeOf<Stats>()
})
