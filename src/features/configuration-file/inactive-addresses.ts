import type { DesiredEnvironment } from './plan.ts';
import type { Finding } from './problem.ts';
import type { ConfigurationFile } from './schema.ts';

/**
 * References of active services to the internal address of a service that was switched off and so never has one. The URL of
 * a service is known without it, so a reference to it stays allowed, except for a database.
 */
export function* inactiveAddresses(
  file: ConfigurationFile,
  { services, inactive = {} }: Pick<DesiredEnvironment, 'services' | 'inactive'>,
): Generator<Finding> {
  for (const [name, service] of Object.entries(services)) {
    const variables =
      'variables' in service ? service.variables : 'build' in service ? service.build.variables : {};
    for (const [variable, template] of Object.entries(variables)) {
      for (const piece of template) {
        if (typeof piece === 'string' || piece.kind !== 'service') continue;
        const to = piece.service;
        if (!Object.hasOwn(inactive, to)) continue;
        if (piece.field === 'url' && inactive[to] !== 'postgres') continue;
        const isOwn = Object.hasOwn(file.services[name]?.env ?? {}, variable);
        yield {
          path: isOwn ? ['services', name, 'env', variable] : ['environment', 'env', variable],
          at: 'value',
          rule: 'reference',
          message: `${name} uses \${services.${to}.${piece.field}}, but ${to} is switched off for this Environment.`,
          fix: `Switch ${to} on, or add ${to} to requires of ${name}, which also switches it on.`,
        };
      }
    }
  }
}
