import { Button } from '@mantine/core';
import { useRef, useState } from 'react';
import common from './admin.module.css';
import { focusIfLost } from '../shell/focus.ts';

/** Which item of a list is being edited or removed, and where the focus goes afterwards. */
export function useEditing<T extends object>() {
  const [editing, edit] = useState<T | 'new'>();
  const [leaving, leave] = useState<T>();
  const heading = useRef<HTMLHeadingElement>(null);
  const close = () => {
    edit(undefined);
    leave(undefined);
  };
  const done = () => focusIfLost(heading.current);
  return { heading, editing, leaving, edit, leave, close, done };
}

type RowProps = {
  readonly name: string;
  /** The verb that removes this kind of item. */
  readonly end: string;
  readonly onChange: () => void;
  readonly onEnd: () => void;
};

export function RowButtons({ name, end, onChange, onEnd }: RowProps) {
  return (
    <span className={common['rowButtons']}>
      <Button variant="default" size="xs" aria-label={`Change ${name}`} onClick={onChange}>
        Change
      </Button>
      <Button variant="default" size="xs" aria-label={`${end} ${name}`} onClick={onEnd}>
        {end}
      </Button>
    </span>
  );
}
