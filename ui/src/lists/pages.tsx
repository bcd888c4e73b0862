import { Pagination } from '@mantine/core';
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
