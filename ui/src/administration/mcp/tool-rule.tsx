import { SegmentedControl } from '@mantine/core';
import { toolRules } from '../../agents/tools.ts';
import styles from '../agents/definition-form.module.css';

export type Rule = keyof typeof toolRules;

type ChoiceProps = {
  /** Ids of the elements that label the choice. */
  readonly labelledBy: string;
  readonly rule: Rule;
  readonly onChange: (rule: Rule) => void;
};

/** Whether agents may use a tool. */
export function RuleChoice({ labelledBy, rule, onChange }: ChoiceProps) {
  return (
    <SegmentedControl aria-labelledby={labelledBy} size="xs" value={rule} onChange={onChange} data={rules} />
  );
}

const rules = (['allow', 'ask', 'hidden'] as const).map((value) => ({ value, label: toolRules[value] }));

type RowProps = Omit<ChoiceProps, 'rule'> & {
  readonly tool: string;
  readonly does?: string;
  /** Without one, the tool is hidden. */
  readonly rule: Rule | undefined;
};

/** A tool with its rule in an agent definition. `labelledBy` is the id of the heading. */
export function ToolRuleRow({ labelledBy, tool, does, rule = 'hidden', onChange }: RowProps) {
  const id = `${labelledBy}-${tool}`;
  return (
    <div className={styles['tool']}>
      <div>
        <code id={id}>{tool}</code>
        {does !== undefined && <span className="subline">{does}</span>}
      </div>
      <RuleChoice labelledBy={`${labelledBy} ${id}`} rule={rule} onChange={onChange} />
    </div>
  );
}
