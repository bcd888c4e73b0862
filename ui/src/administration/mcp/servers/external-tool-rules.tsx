import { useQueries, useQuery } from '@tanstack/react-query';
import { useId } from 'react';
import styles from '../../agents/definition-form.module.css';
import { mcpServers, mcpServerTools } from '../../queries.ts';
import { type Rule, ToolRuleRow } from '../tool-rule.tsx';

type Rules = Readonly<Record<string, Rule>>;
type Props = { readonly rules: Rules; readonly onChange: (rules: Rules) => void };

/** The accepted tools of external servers in the form of an agent definition. Nothing is shown while there are none. */
export function ExternalToolRules({ rules, onChange }: Props) {
  const id = useId();
  const { data } = useQuery(mcpServers);
  const servers = data?.servers ?? [];
  const names = useQueries({
    queries: servers.map(({ slug }) => mcpServerTools(slug)),
    combine: (found) =>
      found.flatMap(({ data: listed }, at) =>
        (listed?.tools ?? [])
          .filter(({ accepted }) => accepted !== null)
          .map(({ name }) => `${servers[at]?.slug}__${name}`),
      ),
  });
  // A rule for a missing tool stays visible, so that the administrator can remove it.
  const all = [...new Set([...names, ...Object.keys(rules).filter((name) => name.includes('__'))])];
  if (all.length === 0) return null;
  return (
    <section aria-labelledby={id}>
      <h2 id={id} className={styles['title']}>
        Tools of external servers
      </h2>
      {all.map((name) => (
        <ToolRuleRow
          key={name}
          labelledBy={id}
          tool={name}
          rule={rules[name]}
          onChange={(rule) => onChange({ ...rules, [name]: rule })}
        />
      ))}
    </section>
  );
}
