import { Pagination } from '@mantine/core';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect } from 'react';

type PagesProps = {
  readonly page: number;
  /** Pages in all; 0 while unknown. */
  readonly total: number;
  readonly onChange: (page: number) => void;
};

/** Page controls, shown if there is more than one page. If the current page no longer exists, it goes to the last one. */
export function Pages({ page, total, onChange }: PagesProps) {
  useEffect(() => {
    if (total > 0 && page > total) onChange(total);
  }, [onChange, page, total]);
  if (total < 2) return null;
  return (
    <Pagination
      mt="md"
      total={total}
      value={page}
      onChange={onChange}
      size="sm"
      getControlProps={(control) => ({ 'aria-label': `${control} page` })}
      getItemProps={(number) => ({ 'aria-label': `Page ${number}` })}
    />
  );
}

type AddressProps = { readonly total: number; readonly onTurn?: (() => void) | undefined };

/** The controls of a list whose page is in the address. */
export function AddressPages({ total, onTurn }: AddressProps) {
  const { page = 1 } = useSearch({ strict: false });
  const navigate = useNavigate();
  const turn = (next: number) => {
    onTurn?.();
    void navigate({
      to: '.',
      search: ({ page: _before, ...shown }) => (next > 1 ? { ...shown, page: next } : shown),
      replace: true,
    });
  };
  return <Pages page={page} total={total} onChange={turn} />;
}
