-- A row here is a failure.
select category, launch_month
from {{ ref('category_months') }}
group by category, launch_month
having count() > 1
