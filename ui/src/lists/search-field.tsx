import { TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useRouter } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { SearchIcon } from '../shell/icons.tsx';
import { useShortcut } from '../shell/shortcuts.ts';
import { searchTextFrom } from './search-text.ts';

type SearchFieldProps = {
  readonly label: string;
  readonly placeholder: string;
  /** The search text in the address. */
  readonly value: string;
  readonly onChange: (text: string) => void;
};

/** Typing does not wait for the address to change. The shortcut `/` focuses it. */
export function SearchField({ label, placeholder, value, onChange }: SearchFieldProps) {
  const [text, setText] = useState(value);
  const field = useRef<HTMLInputElement>(null);
  const router = useRouter();
  const send = useDebouncedCallback((next: string) => {
    const { location, resolvedLocation } = router.state;
    // The user followed a link whose page is still loading; this navigation must not cancel it.
    if (location.pathname === resolvedLocation?.pathname) onChange(next);
  }, 250);
  // The address may change by itself (back, a cleared filter); what is being typed is newer than it.
  useEffect(() => {
    if (document.activeElement !== field.current) setText(value);
  }, [value]);
  useShortcut('/', () => field.current?.focus());
  return (
    <TextInput
      ref={field}
      flex="1 1 16rem"
      type="search"
      aria-label={label}
      placeholder={placeholder}
      leftSection={<SearchIcon />}
      maxLength={200}
      value={text}
      onChange={({ currentTarget }) => {
        const next = searchTextFrom(currentTarget.value);
        setText(next);
        send(next);
      }}
    />
  );
}
