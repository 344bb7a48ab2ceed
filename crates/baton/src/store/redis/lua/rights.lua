-- Rights: a user may lack one, or lose it while nodes run, and a server may have no such command. A script that is refused
-- midway would leave half of its work. So each asks for all of its commands before its first write (begin.lua), and nothing
-- comes between: a script is one step. A short way asks only for those that must not be refused behind its first write.

-- `needs` are the commands of the operation that runs, as words; of a join all that anybody needs. `lists` has the same as
-- lists.
local rights = { needs = '', lists = {} }

-- Whether the user whose call this is may run all of these on the fleet's keys.
function rights.may(commands)
  local allows = redis.acl_check_cmd
  for i = 1, #commands do
    if not allows(commands[i], root) then return false end
  end
  return true
end

function rights.list(needs)
  local commands = {}
  for command in string.gmatch(needs, '%u+') do commands[#commands + 1] = command end
  rights.lists[needs] = commands
  return commands
end

-- Ends the call unless the user may run all of its commands on the fleet's keys. What is missing is told in words: a command
-- as it is called, `!` before one that the server does not have; `~` stands for the keys.
function rights.demand()
  local commands = rights.lists[rights.needs] or rights.list(rights.needs)
  -- A command that the server does not know is an error.
  local is_known, is_allowed = pcall(rights.may, commands)
  if is_known and is_allowed then return end
  local missing, of_keys = {}, false
  for _, command in ipairs(commands) do
    local known, allowed = pcall(redis.acl_check_cmd, command)
    if not known then
      missing[#missing + 1] = '!' .. command
    elseif not allowed then
      missing[#missing + 1] = command
    else
      of_keys = of_keys or not redis.acl_check_cmd(command, root)
    end
  end
  if #missing == 0 or of_keys then table.insert(missing, 1, '~') end
  error({ err = 'RIGHTS ' .. table.concat(missing, ' ') })
end
