import { useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import { api, unwrap } from '../../../api/client.ts';
import type { Issuer } from '../../../keys/trust/platforms.ts';
import { firstRule, mistakesInRule, requestOf, type RuleDraft } from '../../../keys/trust/rule-draft.ts';
import { RuleFields } from '../../../keys/trust/rule-fields.tsx';
import { Problem } from '../../../shell/problem.tsx';
import { useChange } from '../../../shell/use-change.ts';
import { DialogForm } from '../../dialog-form.tsx';

type AddProps = {
  readonly keyId: string;
  /** The issuers of the key policy, at least one. */
  readonly issuers: readonly Issuer[];
  readonly onClose: () => void;
  readonly onDone: () => void;
};

export function AddRule({ keyId, issuers, onClose, onDone }: AddProps) {
  const [first] = issuers;
  const [rule, setRule] = useState(first && firstRule(first));
  const [isChecked, setChecked] = useState(false);
  const fields = useRef<HTMLDivElement>(null);
  const { run, error, isBusy } = useChange({
    act: async () =>
      rule &&
      (await unwrap(
        api.POST('/tokens/{id}/trust', { params: { path: { id: keyId } }, body: requestOf(rule) }),
      )),
    said: 'The trust rule is added.',
    refresh: ['admin', 'keys'],
    onClose,
    onDone,
  });
  if (rule === undefined) return null;
  const mistakes = mistakesInRule(rule);

  function send(): void {
    if (Object.keys(mistakes).length === 0) return run();
    flushSync(() => setChecked(true));
    fields.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }

  function change(next: RuleDraft): void {
    setRule(next);
    setChecked(false);
  }

  return (
    <DialogForm send="Add the rule" isBusy={isBusy} onSend={send} onClose={onClose}>
      <div ref={fields}>
        <RuleFields rule={rule} issuers={issuers} mistakes={isChecked ? mistakes : {}} onChange={change} />
      </div>
      {error !== undefined && <Problem error={error} />}
    </DialogForm>
  );
}
